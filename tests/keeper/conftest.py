"""A supervisor of real processes with short times, and the events that it recorded."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.support.condition import DEADLINE

from freehold.home import Home
from freehold.keeper.host_program import HealthProbe, HostProgram, no_probe
from freehold.keeper.log_reader import LogReader
from freehold.keeper.log_writer import LogWriter
from freehold.keeper.orphans import OrphanGuard
from freehold.keeper.settings import KeeperSettings, LogLimits, RestartPolicy, StopDeadlines
from freehold.keeper.state_signal import StateSignal
from freehold.keeper.supervised_program import SupervisedProgram
from freehold.keeper.supervisor import Supervisor
from freehold.timeline import Json

SHORT = KeeperSettings(
    restart=RestartPolicy(first=0.01, limit=0.05, loop_deaths=4, loop_window=30, loop_wait=0.2),
    # Only `drain` is waited for to its end: by a test whose program ignores the request to stop.
    stop=StopDeadlines(refuse=DEADLINE, drain=2, final_writes=DEADLINE, kill=DEADLINE),
    probe_interval=0.05,
    start_deadline=DEADLINE,
)


@dataclass
class SupervisorHarness:
    """Programs of one line of Python, run by a real supervisor."""

    folder: Path
    settings: KeeperSettings
    log_writer: LogWriter
    orphan_guard: OrphanGuard
    changes: StateSignal = field(default_factory=StateSignal)
    events: list[tuple[str, Mapping[str, Json]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.supervisor = Supervisor(self.settings, self.record, self.changes)

    def record(self, kind: str, data: Mapping[str, Json], *, who: str = "keeper") -> None:
        self.events.append((kind, data))
        self.changes.notify()

    def program(self, name: str, source: str, *, probe: HealthProbe = no_probe, required: bool = True) -> HostProgram:
        argv = [sys.executable, "-S", "-u", "-c", source]
        return HostProgram(
            name,
            argv,
            {},
            self.log_writer,
            self.orphan_guard,
            probe=probe,
            required=required,
            log_limits=self.settings.logs,
        )

    def kinds(self, program: str) -> list[str]:
        return [kind for kind, data in self.events if data.get("program") == program]

    def tune(self, settings: KeeperSettings) -> None:
        self.settings = settings
        self.supervisor = Supervisor(settings, self.record, self.changes)

    async def start_and_read(self, program: HostProgram) -> tuple[SupervisedProgram, str]:
        """Start it, and wait for its first line of output."""
        lines = LogReader(self.folder / "logs", program.name).follow_lines()
        supervised = self.supervisor.start(program)
        first = await asyncio.to_thread(next, lines)
        return supervised, str(first["message"])

    def close_log(self) -> None:
        """Returns when every line is on disk."""
        self.log_writer.__exit__()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(DEADLINE):
            await self.changes.wait_until(condition)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Supervisor]:
        async with self.supervisor.run_programs():
            yield self.supervisor


@pytest.fixture
def settings() -> KeeperSettings:
    return SHORT


@pytest.fixture
def harness(tmp_path: Path, settings: KeeperSettings) -> Iterator[SupervisorHarness]:
    logs = tmp_path / "logs"
    logs.mkdir()
    orphan_guard = OrphanGuard(tmp_path / "programs.json")
    try:
        with LogWriter(logs, LogLimits(), time.time) as log_writer:
            yield SupervisorHarness(tmp_path, settings, log_writer, orphan_guard)
    finally:
        orphan_guard.close()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    root, run = tmp_path / "house", tmp_path / "run"
    root.mkdir(mode=0o700)
    run.mkdir(mode=0o700)
    return Home(root, run)
