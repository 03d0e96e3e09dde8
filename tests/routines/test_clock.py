"""The clock of the gateway: a timer of the kernel that follows the wall clock, and the time zone of this machine."""

import asyncio
import ctypes
import os
import shutil
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from freehold.routines import clock
from freehold.routines.clock import WallClock, read_machine_zone
from freehold.routines.routine_store import zone_name

ZONES = Path("/usr/share/zoneinfo")


@pytest.fixture(autouse=True)
def local_time(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The link that names the zone of this machine. There is none at first."""
    monkeypatch.delenv("TZ", raising=False)
    monkeypatch.setattr(clock, "LOCAL_TIME", tmp_path / "localtime")
    return tmp_path / "localtime"


async def test_a_wait_ends_at_its_time_and_not_before() -> None:
    wall = WallClock()
    until = wall.now() + 0.05
    await wall.wait(until, asyncio.Event())
    assert wall.now() >= until


@pytest.mark.parametrize("seconds", [None, 3600.0])
async def test_a_wait_ends_when_something_has_changed(seconds: float | None) -> None:
    wall, changed = WallClock(), asyncio.Event()
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        group.create_task(wall.wait(None if seconds is None else wall.now() + seconds, changed))
        changed.set()


async def test_a_time_that_has_passed_is_not_waited_for() -> None:
    wall = WallClock()
    for moment in (wall.now(), 0.0, -1.0):
        async with asyncio.timeout(30):
            await wall.wait(moment, asyncio.Event())


async def test_a_clock_that_is_set_ends_a_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel makes the timer readable then. No test may set the clock of this machine, so a pipe stands for the timer."""
    reader, writer = os.pipe()
    wanted: list[float] = []
    started = asyncio.Event()

    def start(moment: float) -> int:
        wanted.append(moment)
        started.set()
        return reader

    monkeypatch.setattr(clock, "_start_timer", start)
    wall = WallClock()
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        waiting = group.create_task(wall.wait(wall.now() + 86400, asyncio.Event()))
        await started.wait()
        assert not waiting.done()
        os.write(writer, b"x")
    os.close(writer)
    assert wanted[0] - wall.now() <= clock.MAX_WAIT  # a changed time zone is seen then


def test_the_timer_of_the_kernel_is_cancelled_when_the_clock_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[str, tuple[Any, ...]]] = []

    class Library:
        def __getattr__(self, name: str) -> Any:
            def call(*given: Any) -> int:
                calls.append((name, given))
                return 0

            return call

    monkeypatch.setattr(ctypes, "CDLL", lambda *_given, **_more: Library())
    clock._start_timer(1_700_000_000.5)
    (made, (of_wall, _)), (setting, (_, flags, _, _)) = calls
    assert (made, of_wall) == ("timerfd_create", 0)  # CLOCK_REALTIME goes on while the machine sleeps
    assert (setting, flags) == ("timerfd_settime", 1 | 2)  # TFD_TIMER_ABSTIME and TFD_TIMER_CANCEL_ON_SET


def test_the_zone_is_that_of_this_machine_and_is_read_again_when_it_changes(
    local_time: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wall = WallClock()
    assert wall.zone().key == "UTC"
    for name in ("Europe/Berlin", "Asia/Kolkata"):
        local_time.unlink(missing_ok=True)
        local_time.symlink_to(ZONES / name)
        assert wall.zone().key == name
    monkeypatch.setenv("TZ", ":America/New_York")
    assert wall.zone().key == "America/New_York"


def test_a_zone_without_a_name_is_used_too(local_time: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of the file, and a variable that has a rule instead of a name."""
    shutil.copy(ZONES / "Asia/Kolkata", local_time)
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    zone = read_machine_zone()
    assert zone.utcoffset(datetime(2026, 6, 1)) == timedelta(hours=5, minutes=30)
    assert zone_name(zone) == zone_name(read_machine_zone())
