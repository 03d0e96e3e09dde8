"""A service of the manifest: a program kept running inside the computer, started through the guest like everything there."""

import asyncio
import contextlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from freehold.errors import FreeholdError
from freehold.keeper.capture import FLOOD_PAUSE, Allowance, LineSink
from freehold.keeper.changes import Changes
from freehold.keeper.kept import KeptProgram
from freehold.keeper.logbook import Logbook
from freehold.keeper.plan import ServicePlan
from freehold.keeper.program import Ending
from freehold.keeper.settings import LogLimits

if TYPE_CHECKING:
    from freehold.computer.link import Link
    from freehold.computer.process import Process
    from freehold.computer.stream import Stream


@dataclass(frozen=True)
class ServiceProgram:
    """Waits for the computer before each life, and is no requirement of the seal: what the agent broke may stay broken."""

    plan: ServicePlan
    socket: Path
    computer: KeptProgram
    changes: Changes
    book: Logbook
    logs: LogLimits = field(default_factory=LogLimits)
    required: bool = False

    @property
    def name(self) -> str:
        return f"service-{self.plan.name}"

    async def start(self) -> "ServiceRun":
        from freehold.computer.link import Link
        from freehold.computer.process import Process, spawn_request

        await self.changes.until(lambda: self.computer.state in ("ready", "stopping", "stopped"))
        if self.computer.state != "ready":
            raise FreeholdError("computer.not-running", "The computer is stopping")
        link = await Link.connect(self.socket)
        try:
            request = spawn_request(self.plan.command, self.plan.folder, None, None, stdin=True)
            process = await Process.start(link, request)
        except BaseException:
            link.close()
            raise
        return ServiceRun(self, link, process)


class ServiceRun:
    """Its link is its life: when the link is lost, the guest ends the process."""

    def __init__(self, program: ServiceProgram, link: "Link", process: "Process") -> None:
        self._program = program
        self._link = link
        self._process = process
        # The pid it has inside says nothing on the host.
        self.pid: int | None = None

    async def ended(self) -> Ending:
        allowance = Allowance(self._program.logs, asyncio.get_running_loop().time())
        async with asyncio.TaskGroup() as group:
            for name, stream in (("stdout", self._process.stdout), ("stderr", self._process.stderr)):
                group.create_task(self._pump(stream, name, allowance))
        try:
            end = await self._process.wait()
        except FreeholdError as error:
            return Ending(f"was lost with the computer: {error.message}")
        finally:
            self._link.close()
        words = f"exited with {end.code}" if end.code is not None else f"was killed by signal {end.signal}"
        return Ending(words, end.code)

    async def probe(self) -> float:
        if self._process.exit is not None:
            raise FreeholdError("service.ended", "It has ended")
        return 0.0

    async def refuse(self) -> None:
        with contextlib.suppress(FreeholdError):
            self._process.terminate()

    async def drain(self) -> None:
        with contextlib.suppress(FreeholdError):
            await self._process.wait()

    async def kill(self) -> None:
        with contextlib.suppress(FreeholdError):
            self._process.kill()
        self._link.close()

    async def _pump(self, stream: "Stream", name: str, allowance: Allowance) -> None:
        program = self._program
        sink = LineSink(program.name, name, program.book, program.logs, allowance)
        try:
            with contextlib.suppress(FreeholdError):
                async for data in stream:
                    if not sink.feed(data):
                        await asyncio.sleep(FLOOD_PAUSE)
        finally:
            sink.close()
