"""All the programs of this Freehold: started in order, each kept on its own, stopped in stages."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass

from freehold.errors import FreeholdError
from freehold.keeper.changes import Changes
from freehold.keeper.kept import KeptProgram
from freehold.keeper.program import Program
from freehold.keeper.recorder import Record
from freehold.keeper.settings import KeeperSettings
from freehold.keeper.tending import tended

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StageReport:
    """A stage of the stop that is over, with those who had not finished it by its deadline."""

    stage: str
    seconds: float
    stragglers: tuple[str, ...]


class Supervisor:
    def __init__(self, settings: KeeperSettings, record: Record, changes: Changes) -> None:
        self._settings = settings
        self._record = record
        self._changes = changes
        self._kept: dict[str, KeptProgram] = {}
        self._group: asyncio.TaskGroup | None = None
        self._hurry = asyncio.Event()
        self.stopping = False

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Programs live inside this; whatever still runs when it is left is killed."""
        async with asyncio.TaskGroup() as self._group:
            try:
                yield
            finally:
                self.stopping = True
                for kept in self._kept.values():
                    kept.leave()
                    if kept.run is not None:
                        await kept.run.kill()

    def start(self, program: Program) -> KeptProgram:
        if self._group is None:
            raise RuntimeError("programs are started inside `running`")
        kept = self._kept[program.name] = KeptProgram(program, self._settings, self._record, self._changes)
        self._group.create_task(tended(f"the keeping of {program.name}", kept.keep))
        return kept

    def programs(self) -> list[KeptProgram]:
        return list(self._kept.values())

    def find(self, name: str) -> KeptProgram:
        kept = self._kept.get(name)
        if kept is None:
            names = ", ".join(self._kept) or "none yet"
            raise FreeholdError(
                "keeper.no-such-program", f"There is no program {name!r}", hint=f"The programs are: {names}"
            )
        return kept

    def missing(self) -> list[str]:
        """Why there is no seal, one cause for each required program that is not ready."""
        return [
            f"{kept.name} is {kept.state}"
            # One that is only just starting does not answer yet: that is no cause.
            + (f": {kept.last_error}" if kept.last_error and kept.state != "starting" else "")
            for kept in self._kept.values()
            if kept.program.required and kept.state != "ready"
        ]

    def hurry(self) -> None:
        """Give nobody any more time."""
        self._hurry.set()

    async def stop(self, final_writes: Callable[[], Awaitable[None]]) -> list[StageReport]:
        """Refuse new work, drain, final writes, kill; the last started goes first."""
        self.stopping = True
        deadlines = self._settings.stop
        last_first = self.programs()[::-1]
        for kept in last_first:
            kept.leave()
        reports = [await self._stage("refuse", deadlines.refuse, [(k.name, self._refuse(k)) for k in last_first])]
        # One after the other: the gateway finishes what it does in the computer before the computer goes.
        seconds, late = 0.0, list[str]()
        for kept in last_first:
            report = await self._stage("drain", deadlines.drain, [(kept.name, self._drain(kept))], quiet=True)
            seconds += report.seconds
            late += report.stragglers
        reports.append(self._reported(StageReport("drain", seconds, tuple(late))))
        reports.append(await self._stage("final_writes", deadlines.final_writes, [("history", final_writes())]))
        reports.append(await self._stage("kill", deadlines.kill, [(k.name, self._kill(k)) for k in last_first]))
        return reports

    async def _stage(
        self, stage: str, deadline: float, work: list[tuple[str, Awaitable[None]]], *, quiet: bool = False
    ) -> StageReport:
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with asyncio.TaskGroup() as group:
            tasks = {group.create_task(_quietly(name, each)): name for name, each in work}
            hurry = group.create_task(self._hurry.wait())
            pending = set(tasks)
            while pending and loop.time() < began + deadline:
                # In a hurry only the kill is waited for.
                if hurry.done() and stage != "kill":
                    break
                either = pending if hurry.done() else {*pending, hurry}
                await asyncio.wait(either, timeout=began + deadline - loop.time(), return_when=asyncio.FIRST_COMPLETED)
                pending = {task for task in pending if not task.done()}
            hurry.cancel()
            for task in pending:
                task.cancel()
        report = StageReport(stage, round(loop.time() - began, 3), tuple(tasks[task] for task in pending))
        return report if quiet else self._reported(report)

    def _reported(self, report: StageReport) -> StageReport:
        self._record(
            "keeper.stop_stage_finished",
            {"stage": report.stage, "seconds": report.seconds, "stragglers": list(report.stragglers)},
        )
        if report.stragglers:
            log.warning("%s did not finish %s in time", ", ".join(report.stragglers), report.stage)
        return report

    @staticmethod
    async def _refuse(kept: KeptProgram) -> None:
        if kept.run is not None:
            await kept.run.refuse()

    async def _drain(self, kept: KeptProgram) -> None:
        if kept.run is not None:
            await kept.run.drain()
        await self._changes.until(lambda: kept.state == "stopped")

    async def _kill(self, kept: KeptProgram) -> None:
        if kept.run is not None:
            await kept.run.kill()
        await self._changes.until(lambda: kept.state == "stopped")


async def _quietly(name: str, work: Awaitable[None]) -> None:
    """One program's trouble in a stage is noted and leaves the others' stage alone."""
    try:
        await work
    except Exception:
        log.exception("%s could not finish its stage", name)
