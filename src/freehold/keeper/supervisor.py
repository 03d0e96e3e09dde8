"""All programs of a Freehold: starts them, supervises each one, and stops them in stages."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from freehold.errors import FreeholdError
from freehold.keeper.program import Program
from freehold.keeper.recorder import RecordEvent
from freehold.keeper.retry import retry_until_done
from freehold.keeper.settings import KeeperSettings
from freehold.keeper.state_signal import StateSignal
from freehold.keeper.supervised_program import SupervisedProgram

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StopStageReport:
    """A finished stage of a stop. `stragglers` are the programs that missed its deadline."""

    stage: str
    seconds: float
    stragglers: tuple[str, ...]


class Supervisor:
    def __init__(self, settings: KeeperSettings, record: RecordEvent, changes: StateSignal) -> None:
        self._settings = settings
        self._record = record
        self._changes = changes
        self._programs: dict[str, SupervisedProgram] = {}
        self._group: asyncio.TaskGroup | None = None
        self._stop_waiting = asyncio.Event()
        self.stopping = False

    @contextlib.asynccontextmanager
    async def run_programs(self) -> AsyncIterator[None]:
        """Programs can run while this is open; those that still run at its end are killed."""
        async with asyncio.TaskGroup() as self._group:
            try:
                yield
            finally:
                self.stopping = True
                for supervised in self._programs.values():
                    supervised.stop_restarting()
                    if supervised.run is not None:
                        await supervised.run.kill()

    def start(self, program: Program) -> SupervisedProgram:
        if self._group is None:
            raise RuntimeError("programs are started inside `run_programs`")
        supervised = self._programs[program.name] = SupervisedProgram(
            program, self._settings, self._record, self._changes
        )
        self._group.create_task(retry_until_done(f"the supervision of {program.name}", supervised.supervise))
        return supervised

    def programs(self) -> list[SupervisedProgram]:
        return list(self._programs.values())

    def find(self, name: str) -> SupervisedProgram:
        supervised = self._programs.get(name)
        if supervised is None:
            names = ", ".join(self._programs) or "none yet"
            raise FreeholdError(
                "keeper.no-such-program", f"There is no program {name!r}", hint=f"The programs are: {names}"
            )
        return supervised

    def missing_requirements(self) -> list[str]:
        """Why there is no seal: one reason for each required program that is not ready."""
        return [
            f"{supervised.name} is {supervised.state}"
            # A program that has just been started does not answer yet, which is not an error.
            + (f": {supervised.last_error}" if supervised.last_error and supervised.state != "starting" else "")
            for supervised in self._programs.values()
            if supervised.program.required and supervised.state != "ready"
        ]

    def stop_waiting(self) -> None:
        """End all waiting in a stop: everything is killed now."""
        self._stop_waiting.set()

    async def stop(self, final_writes: Callable[[], Awaitable[None]]) -> list[StopStageReport]:
        """Refuse new work, drain, write, kill. The program that was started last is stopped first."""
        self.stopping = True
        deadlines = self._settings.stop
        last_first = self.programs()[::-1]
        for supervised in last_first:
            supervised.stop_restarting()
        reports = [await self._stage("refuse", deadlines.refuse, [(k.name, self._refuse(k)) for k in last_first])]
        # One after the other: the gateway finishes its work in the computer before the computer stops.
        seconds, late = 0.0, list[str]()
        for supervised in last_first:
            report = await self._stage(
                "drain", deadlines.drain, [(supervised.name, self._drain(supervised))], quiet=True
            )
            seconds += report.seconds
            late += report.stragglers
        reports.append(self._reported(StopStageReport("drain", seconds, tuple(late))))
        reports.append(await self._stage("final_writes", deadlines.final_writes, [("history", final_writes())]))
        reports.append(await self._stage("kill", deadlines.kill, [(k.name, self._kill(k)) for k in last_first]))
        return reports

    async def _stage(
        self, stage: str, deadline: float, work: list[tuple[str, Awaitable[None]]], *, quiet: bool = False
    ) -> StopStageReport:
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with asyncio.TaskGroup() as group:
            tasks = {group.create_task(_log_errors(name, each)): name for name, each in work}
            cut_short = group.create_task(self._stop_waiting.wait())
            pending = set(tasks)
            while pending and loop.time() < began + deadline:
                # After `stop_waiting` only the kill is waited for.
                if cut_short.done() and stage != "kill":
                    break
                either = pending if cut_short.done() else {*pending, cut_short}
                await asyncio.wait(either, timeout=began + deadline - loop.time(), return_when=asyncio.FIRST_COMPLETED)
                pending = {task for task in pending if not task.done()}
            cut_short.cancel()
            for task in pending:
                task.cancel()
        report = StopStageReport(stage, round(loop.time() - began, 3), tuple(tasks[task] for task in pending))
        return report if quiet else self._reported(report)

    def _reported(self, report: StopStageReport) -> StopStageReport:
        self._record(
            "keeper.stop_stage_finished",
            {"stage": report.stage, "seconds": report.seconds, "stragglers": list(report.stragglers)},
        )
        if report.stragglers:
            log.warning("%s did not finish %s in time", ", ".join(report.stragglers), report.stage)
        return report

    @staticmethod
    async def _refuse(supervised: SupervisedProgram) -> None:
        if supervised.run is not None:
            await supervised.run.request_stop()

    async def _drain(self, supervised: SupervisedProgram) -> None:
        if supervised.run is not None:
            await supervised.run.wait_drained()
        await self._changes.wait_until(lambda: supervised.state == "stopped")

    async def _kill(self, supervised: SupervisedProgram) -> None:
        if supervised.run is not None:
            await supervised.run.kill()
        await self._changes.wait_until(lambda: supervised.state == "stopped")


async def _log_errors(name: str, work: Awaitable[None]) -> None:
    """Log the error of one program, so that it does not disturb the stage of the others."""
    try:
        await work
    except Exception:
        log.exception("%s could not finish its stage", name)
