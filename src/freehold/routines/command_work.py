"""Work that is a shell command in the computer. What it changed is one entry of history."""

import json

from freehold.agents.sessions.dependencies import SessionDependencies
from freehold.routines.records import Routine, RoutineRun
from freehold.routines.run_changes import RunEnd
from freehold.routines.shell_command import StoppableCommand, mark_files, run_shell, tell_reason

STOPPED = "It was stopped"
RESTARTED = "Freehold was restarted while it ran. It was not begun again: look at what it has done"


class CommandWork:
    def __init__(self, dependencies: SessionDependencies) -> None:
        self._dependencies = dependencies
        self._commands: dict[str, StoppableCommand] = {}

    async def begin(self, routine: Routine, run: RoutineRun) -> RunEnd | None:
        command = self._commands[run.id] = StoppableCommand()
        try:
            return await self._run(routine, run, command)
        finally:
            del self._commands[run.id]

    async def _run(self, routine: Routine, run: RoutineRun, command: StoppableCommand) -> RunEnd:
        await self._dependencies.wait_connected()
        computer, spec = self._dependencies.computer(), routine.spec
        assert spec.command is not None
        await mark_files(self._dependencies, "before", tell_reason(routine.name))
        if command.is_stopped:
            return RunEnd("cancelled", error=STOPPED)
        try:
            end = await run_shell(
                computer,
                spec.command,
                told=json.dumps(dict(run.data)).encode(),
                variables={"ROUTINE_NAME": run.routine, "ROUTINE_RUN": run.id},
                longest=spec.longest,
                on_start=command.note,
            )
        finally:
            await mark_files(self._dependencies, "after", tell_reason(routine.name))
        if command.is_stopped:
            return RunEnd("cancelled", end.output, STOPPED)
        if end.problem is not None:
            return RunEnd("failed", end.output, end.problem)
        return RunEnd("done", end.output, quiet=not end.output.strip())

    async def recover(self, routine: Routine, run: RoutineRun) -> RunEnd | None:
        # What it has changed is its own, and what changes from now on is not.
        await mark_files(self._dependencies, "after", tell_reason(routine.name))
        return RunEnd("uncertain", error=RESTARTED)

    async def settle(self, run: RoutineRun) -> RunEnd | None:
        return None

    async def measure_cost(self, run: RoutineRun) -> float | None:
        return None

    async def stop(self, run: RoutineRun, reason: str) -> None:
        command = self._commands.get(run.id)
        if command is not None:
            command.stop()
