"""Work that is a shell command in the computer. What it changed is one entry of history."""

import json

from freehold.agents.sessions.dependencies import SessionDependencies
from freehold.computer.library.process import Process
from freehold.routines.records import Routine, RoutineRun
from freehold.routines.run_store import RunEnd
from freehold.routines.shell_command import mark_files, run_shell

RESTARTED = "Freehold was restarted while it ran. It was not begun again: look at what it has done"


class CommandWork:
    def __init__(self, dependencies: SessionDependencies) -> None:
        self._dependencies = dependencies
        self._processes: dict[str, Process] = {}

    async def begin(self, routine: Routine, run: RoutineRun) -> RunEnd | None:
        await self._dependencies.wait_connected()
        computer, spec = self._dependencies.computer(), routine.spec
        assert spec.command is not None
        await mark_files(self._dependencies, "before", tell_reason(routine.name))

        def note(process: Process) -> None:
            self._processes[run.id] = process

        try:
            end = await run_shell(
                computer,
                spec.command,
                told=json.dumps(dict(run.data)).encode(),
                variables={"ROUTINE_NAME": run.routine, "ROUTINE_RUN": run.id},
                longest=spec.longest,
                on_start=note,
            )
        finally:
            self._processes.pop(run.id, None)
            await mark_files(self._dependencies, "after", tell_reason(routine.name))
        if end.problem is not None:
            return RunEnd("failed", end.output, end.problem)
        return RunEnd("done", end.output, quiet=not end.output.strip())

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


def tell_reason(routine: str) -> str:
    """What history says about an entry of a routine's command."""
    return f"routine {routine}"
