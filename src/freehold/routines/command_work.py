"""Work that is a shell command in the computer. What it changed is one entry of history."""

import asyncio
import codecs
import json
from contextlib import suppress
from typing import Literal

from freehold.agents.sessions.dependencies import SessionDependencies
from freehold.computer import Computer
from freehold.computer.contract.conventions import OWNER_COMMANDS, WORKSPACE
from freehold.computer.library.process import Process
from freehold.errors import FreeholdError
from freehold.history.calls import MarkFiles, RequestAuthor
from freehold.routines.records import Routine, RoutineRun
from freehold.routines.run_store import RunEnd
from freehold.routines.section import RoutineSection

MAX_OUTPUT = 6_000
"""Characters of the output that are kept: its end."""
RESTARTED = "Freehold was restarted while it ran. It was not begun again: look at what it has done"


class CommandWork:
    def __init__(self, dependencies: SessionDependencies) -> None:
        self._dependencies = dependencies
        self._processes: dict[str, Process] = {}

    async def begin(self, routine: Routine, run: RoutineRun) -> RunEnd | None:
        await self._dependencies.wait_connected()
        computer, spec = self._dependencies.computer(), routine.spec
        await self._mark("before", routine)
        try:
            return await self._execute(computer, spec, run)
        finally:
            self._processes.pop(run.id, None)
            await self._mark("after", routine)

    async def recover(self, routine: Routine, run: RoutineRun) -> RunEnd | None:
        return RunEnd("uncertain", error=RESTARTED)

    async def settle(self, run: RoutineRun) -> RunEnd | None:
        return None

    async def measure_cost(self, run: RoutineRun) -> float | None:
        return None

    async def stop(self, run: RoutineRun, reason: str) -> None:
        process = self._processes.get(run.id)
        if process is not None:
            process.kill()

    async def _execute(self, computer: Computer, spec: RoutineSection, run: RoutineRun) -> RunEnd:
        assert spec.command is not None
        names = {"ROUTINE_NAME": run.routine, "ROUTINE_RUN": run.id}
        with computer.hold_awake():
            async with await computer.spawn(
                ["/bin/bash", "-lc", spec.command],
                cwd=WORKSPACE,
                env=names,
                timeout=spec.longest,
                merge_stderr=True,
                apart=OWNER_COMMANDS,
            ) as process:
                self._processes[run.id] = process
                feeding = asyncio.ensure_future(_feed(process, json.dumps(dict(run.data)).encode()))
                try:
                    output = await _read_end(process)
                    exit = await process.wait()
                finally:
                    feeding.cancel()
                    await asyncio.gather(feeding, return_exceptions=True)
        if exit.timed_out:
            return RunEnd("failed", output, f"It worked for {spec.longest} s, which is its longest")
        if exit.code != 0:
            how = f"exit code {exit.code}" if exit.code is not None else f"signal {exit.signal}"
            return RunEnd("failed", output, f"The command ended with {how}")
        return RunEnd("done", output, quiet=not output.strip())

    async def _mark(self, phase: Literal["before", "after"], routine: Routine) -> None:
        # Without an answer of the keeper it goes on: history then has one entry for this and what comes next.
        with suppress(FreeholdError):
            await self._dependencies.keeper.call(
                MarkFiles(phase, "command", RequestAuthor(by="owner"), tell_reason(routine.name))
            )


def tell_reason(routine: str) -> str:
    """What history says about an entry of a routine's command."""
    return f"routine {routine}"


async def _feed(process: Process, data: bytes) -> None:
    with suppress(FreeholdError):
        await process.write(data)
        process.close_stdin()


async def _read_end(process: Process) -> str:
    """The end of the output. The rest is read too, so that the command does not block."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    kept, cut = "", False
    while data := await process.stdout.read():
        kept += decoder.decode(data)
        if len(kept) > MAX_OUTPUT:
            kept, cut = kept[-MAX_OUTPUT:], True
    return f"…{kept}" if cut else kept
