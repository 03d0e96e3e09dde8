"""The clock of routines: the time of the wall, the zone of this machine, and a wait that the wall clock ends.

A timer of the event loop counts the time that this machine was awake. It would wake late after a sleep of the machine,
and know nothing of a clock that was set.
"""

import asyncio
import ctypes
import errno
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Protocol
from zoneinfo import ZoneInfo

MAX_WAIT = 60.0
"""Seconds after which a changed time zone of this machine is seen at the latest."""
LOCAL_TIME = Path("/etc/localtime")
_CLOCK_REALTIME = 0
_TFD_NONBLOCK = os.O_NONBLOCK
_TFD_CLOEXEC = os.O_CLOEXEC
_TFD_TIMER_ABSTIME = 1
_TFD_TIMER_CANCEL_ON_SET = 2


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since 1970."""
        ...

    def zone(self) -> ZoneInfo:
        """The time zone of this machine now."""
        ...

    async def wait(self, until: float | None, changed: asyncio.Event) -> None:
        """Returns at this time, when `changed` is set, when the clock was set, or earlier."""
        ...


class _TimerSpec(ctypes.Structure):
    _fields_ = (
        ("interval_seconds", ctypes.c_long),
        ("interval_nanoseconds", ctypes.c_long),
        ("seconds", ctypes.c_long),
        ("nanoseconds", ctypes.c_long),
    )


class WallClock:
    """Waits with a timer of the kernel that follows the wall clock, and ends when that is set."""

    def __init__(self) -> None:
        self._zone: tuple[object, ZoneInfo] | None = None

    def now(self) -> float:
        return time.time()

    def zone(self) -> ZoneInfo:
        """Read anew when the setting of this machine has changed: it is asked for each routine that is due."""
        setting = _read_setting()
        if self._zone is None or self._zone[0] != setting:
            self._zone = (setting, read_machine_zone())
        return self._zone[1]

    async def wait(self, until: float | None, changed: asyncio.Event) -> None:
        if changed.is_set() or (until is not None and until <= self.now()):
            return
        loop = asyncio.get_running_loop()
        fired = asyncio.Event()
        latest = self.now() + MAX_WAIT
        timer = _start_timer(latest if until is None else min(until, latest))
        loop.add_reader(timer, fired.set)
        waiting = [asyncio.ensure_future(one.wait()) for one in (changed, fired)]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            loop.remove_reader(timer)
            os.close(timer)
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)


def _start_timer(moment: float) -> int:
    """A file that can be read at this time, or when the clock is set."""
    libc = ctypes.CDLL(None, use_errno=True)
    timer = libc.timerfd_create(_CLOCK_REALTIME, _TFD_NONBLOCK | _TFD_CLOEXEC)
    if timer < 0:
        raise OSError(ctypes.get_errno(), "timerfd_create")
    nanoseconds = max(1, round(moment * 1e9))
    spec = _TimerSpec(0, 0, nanoseconds // 10**9, nanoseconds % 10**9)
    flags = _TFD_TIMER_ABSTIME | _TFD_TIMER_CANCEL_ON_SET
    if libc.timerfd_settime(timer, flags, ctypes.byref(spec), None) < 0 and ctypes.get_errno() != errno.ECANCELED:
        problem = ctypes.get_errno()
        os.close(timer)
        raise OSError(problem, "timerfd_settime")
    return int(timer)


def _read_setting() -> object:
    """Something that is another when the time zone of this machine is."""
    try:
        found = LOCAL_TIME.stat()
    except OSError:
        return os.environ.get("TZ")
    return os.environ.get("TZ"), found.st_dev, found.st_ino, found.st_mtime_ns


def read_machine_zone() -> ZoneInfo:
    """The zone of the variable TZ, else of /etc/localtime, else UTC."""
    name = os.environ.get("TZ", "").removeprefix(":")
    if name:
        with suppress(Exception):  # it may hold a rule instead of a name
            return ZoneInfo(name)
    with suppress(OSError, ValueError):
        target = str(LOCAL_TIME.resolve(strict=True))
        _, found, zone = target.partition("/zoneinfo/")
        if found:
            return ZoneInfo(zone.removeprefix("posix/").removeprefix("right/"))
        with LOCAL_TIME.open("rb") as file:  # a copy without a name
            return ZoneInfo.from_file(file)
    return ZoneInfo("UTC")
