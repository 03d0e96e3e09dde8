"""A supervisor with real processes and a short temper, and what it recorded."""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from freehold.home import Home
from freehold.keeper.changes import Changes
from freehold.keeper.host_program import HostProgram, Probe, no_probe
from freehold.keeper.kept import KeptProgram
from freehold.keeper.logbook import Logbook
from freehold.keeper.settings import KeeperSettings, LogLimits, RestartPolicy, StopDeadlines
from freehold.keeper.strays import Strays
from freehold.keeper.supervisor import Supervisor
from freehold.timeline import Json

SHORT = KeeperSettings(
    restart=RestartPolicy(first=0.01, limit=0.05, loop_deaths=4, loop_window=30, loop_wait=0.2),
    stop=StopDeadlines(refuse=1, drain=0.5, final_writes=1, kill=3),
    probe=0.05,
    start_deadline=10,
)


@dataclass
class Workshop:
    """Programs made of a line of Python, kept by a real supervisor."""

    folder: Path
    settings: KeeperSettings
    book: Logbook
    strays: Strays
    changes: Changes = field(default_factory=Changes)
    events: list[tuple[str, Mapping[str, Json]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.supervisor = Supervisor(self.settings, self.record, self.changes)

    def record(self, kind: str, data: Mapping[str, Json], *, who: str = "keeper") -> None:
        self.events.append((kind, data))
        self.changes.tell()

    def program(self, name: str, source: str, *, probe: Probe = no_probe, required: bool = True) -> HostProgram:
        argv = [sys.executable, "-S", "-u", "-c", source]
        return HostProgram(
            name, argv, {}, self.book, self.strays, probe=probe, required=required, logs=self.settings.logs
        )

    def kinds(self, program: str) -> list[str]:
        return [kind for kind, data in self.events if data.get("program") == program]

    def tune(self, settings: KeeperSettings) -> None:
        self.settings = settings
        self.supervisor = Supervisor(settings, self.record, self.changes)

    async def start_and_hear(self, program: HostProgram) -> tuple[KeptProgram, str]:
        """Start it, and wait for its first words."""
        async with contextlib.aclosing(self.book.follow(program.name)) as lines:
            async with asyncio.TaskGroup() as group:
                first = group.create_task(_next(lines))
                await asyncio.sleep(0)
                kept = self.supervisor.start(program)
            return kept, str(first.result()["message"])

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            await self.changes.until(condition)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Supervisor]:
        async with self.supervisor.running():
            yield self.supervisor


@pytest.fixture
def settings() -> KeeperSettings:
    return SHORT


@pytest.fixture
def workshop(tmp_path: Path, settings: KeeperSettings) -> Iterator[Workshop]:
    logs = tmp_path / "logs"
    logs.mkdir()
    strays = Strays(tmp_path / "programs.json")
    try:
        with Logbook(logs, LogLimits(), time.time) as book:
            yield Workshop(tmp_path, settings, book, strays)
    finally:
        strays.close()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    root, run = tmp_path / "house", tmp_path / "run"
    root.mkdir(mode=0o700)
    run.mkdir(mode=0o700)
    return Home(root, run)


async def _next(lines: AsyncGenerator[dict[str, Any], None]) -> dict[str, Any]:
    return await anext(lines)
