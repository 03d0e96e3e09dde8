"""A clock that is set, and the stores of routines on a timeline of their own."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import pytest_asyncio
from tests.agents.session_harness import SessionHarness, run_harness

from freehold.computer import Computer
from freehold.routines.records import Routine, RoutineRun
from freehold.routines.routine_store import RoutineStore
from freehold.routines.run_changes import RunEnd
from freehold.routines.run_store import RunStore
from freehold.routines.section import RoutineSection
from freehold.timeline import Timeline

BERLIN = ZoneInfo("Europe/Berlin")


def moment(text: str, zone: ZoneInfo = BERLIN) -> float:
    """`2026-03-29 02:30` in seconds since 1970."""
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


def show(moment: float | None, zone: ZoneInfo = BERLIN) -> str | None:
    return None if moment is None else datetime.fromtimestamp(moment, zone).strftime("%Y-%m-%d %H:%M")


class SetClock:
    """It stands still until it is set. Whoever waits is woken when it is, as by the timer of the kernel."""

    def __init__(self, text: str = "2026-06-01 12:00") -> None:
        self._now = moment(text)
        self._zone = BERLIN
        self._set = asyncio.Event()

    def now(self) -> float:
        return self._now

    def zone(self) -> ZoneInfo:
        return self._zone

    def set(self, text: str | float) -> None:
        self._now = moment(text) if isinstance(text, str) else text
        self._wake()

    def forward(self, seconds: float) -> None:
        self.set(self._now + seconds)

    def move_to(self, zone: str) -> None:
        """Another time zone of the machine."""
        self._zone = ZoneInfo(zone)
        self._wake()

    def _wake(self) -> None:
        woken, self._set = self._set, asyncio.Event()
        woken.set()

    async def wait(self, until: float | None, changed: asyncio.Event) -> None:
        if changed.is_set() or (until is not None and until <= self._now):
            return
        waiting = [asyncio.ensure_future(one.wait()) for one in (changed, self._set)]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)


@dataclass
class StoreBench:
    """The stores, and the short words of the tests."""

    timeline: Timeline
    clock: SetClock
    routines: RoutineStore
    runs: RunStore

    def add(self, name: str = "r", **spec: object) -> Routine:
        given = {"command": "true", **spec} if not {"prompt", "checklist"} & spec.keys() else spec
        return self.routines.add(name, RoutineSection.model_validate(given), who="owner")

    def tick(self) -> tuple[RoutineRun, ...]:
        """What the gateway does when it wakes: the runs that begin."""
        begun, is_cut = list[RoutineRun](), True
        while is_cut:
            claimed = self.runs.begin_due()
            begun, is_cut = [*begun, *claimed.begun], claimed.is_cut
        return tuple(begun)

    def finish(self, state: str = "done", **more: object) -> None:
        for run in self.runs.list_open():
            self.runs.end(run.id, RunEnd(state, **more))  # type: ignore[arg-type]

    def states(self, name: str = "r") -> list[str]:
        """The oldest first."""
        return [run.state for run in reversed(self.runs.list_runs(name))]

    def kinds(self) -> list[str]:
        return [event.kind for event in self.timeline.read(kinds=["routine.*"])]


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def stores(tmp_path: Path, clock: SetClock) -> Iterator[StoreBench]:
    with Timeline(tmp_path / "timeline.db") as timeline:
        routines = RoutineStore(timeline, clock)
        routines.prepare()
        yield StoreBench(timeline, clock, routines, RunStore(routines))


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("workspace")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def computer(workspace: Path) -> AsyncIterator[Computer]:
    async with Computer.start(workspace=workspace) as computer:
        yield computer


@pytest_asyncio.fixture(loop_scope="module")
async def sessions(computer: Computer, workspace: Path, tmp_path: Path) -> AsyncIterator[SessionHarness]:
    async with run_harness(computer, workspace, tmp_path / "home") as harness:
        yield harness
