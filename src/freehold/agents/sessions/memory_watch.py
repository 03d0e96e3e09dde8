"""Measures what agents use of the computer's memory, and finds out whether one was ended for want of it."""

import asyncio
import logging
import signal
import time
from contextlib import suppress

from freehold.agents.acp.json_rpc import AgentError
from freehold.agents.sessions.admission import Admission
from freehold.agents.sessions.dependencies import SessionDependencies
from freehold.computer.library.process import ProcessExit
from freehold.errors import FreeholdError
from freehold.keeper.calls import GetKeeperStatus

INTERVAL = 5.0
SHORT_INTERVAL = 1.0
"""Seconds between two measurements while somebody waits for memory."""

REPLY_TIMEOUT = 10.0
"""Seconds in which the computer must answer. A measurement that takes longer is given up."""

RECENT = 10.0
"""Seconds for which a kill for memory explains the end of an agent."""

log = logging.getLogger("freehold.agents")


class MemoryWatch:
    def __init__(self, dependencies: SessionDependencies, admission: Admission) -> None:
        self._dependencies = dependencies
        self._admission = admission
        self._kills: int | None = None
        self._killed_at: float | None = None

    async def run(self) -> None:
        """Until cancelled. What one measurement ends with does not end the service."""
        await self._count_kills()
        while True:
            await asyncio.sleep(SHORT_INTERVAL if self._admission.is_short else INTERVAL)
            try:
                if self._admission.list_processes():
                    await self.measure()
                    await self._count_kills()
            except Exception:
                log.exception("the memory of agents cannot be measured")

    async def measure(self) -> None:
        """Without an answer of the computer, what was known before stays."""
        with suppress(FreeholdError, TimeoutError):
            computer = self._dependencies.computer()
            if computer.is_asleep:
                return
            async with asyncio.timeout(REPLY_TIMEOUT):
                use = await computer.measure_memory(self._admission.list_processes())
            self._admission.apply_measurement(use.trees, use.other)

    async def explain(self, error: FreeholdError, exit: ProcessExit | None) -> FreeholdError:
        """The error of an agent, with the reason and the setting if the computer ran out of memory."""
        hint = "Raise memory under [computer.limits] in freehold.toml, or run fewer agents and programs at once"
        was_killed = exit is not None and exit.signal == signal.SIGKILL
        # Where no cgroup holds the limit, the kernel refuses memory to a large process, and most then end themselves.
        was_refused = error.message.endswith("MemoryError")
        if error.code == "agent.ended" and (was_refused or (was_killed and await self._was_short())):
            limit = self._dependencies.manifest.computer.limits.memory / 1024**2
            return AgentError(
                "agent.out-of-memory",
                f"The agent was ended: the computer ran out of its {limit:.0f} MiB of memory",
                hint=hint,
            )
        if error.code == "agent.refused" and await self._was_short():
            # The agent lives, and a program that it started was ended.
            return AgentError("agent.refused", f"{error.message}. The computer ran out of memory meanwhile", hint=hint)
        return error

    async def _was_short(self) -> bool:
        """Whether the computer ended a process for want of memory just now."""
        await self._count_kills()
        return self._killed_at is not None and time.monotonic() - self._killed_at < RECENT

    async def _count_kills(self) -> None:
        with suppress(FreeholdError):
            usage = (await self._dependencies.keeper.call(GetKeeperStatus())).usage
            count = None if usage is None else usage.out_of_memory
            if count is not None and self._kills is not None and count > self._kills:
                self._killed_at = time.monotonic()
            self._kills = count
