"""Waits until the database may have changed: with inotify where possible, else by polling."""

import asyncio
import ctypes
import os
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

_IN_MODIFY = 0x2
_FIRST_DELAY = 0.004
_MAX_DELAY_BURST = 0.032
_BURST = 0.02
"""Seconds after a pause within which the next write belongs to the same burst."""
_MAX_DELAY_INOTIFY = 1.0
_MAX_DELAY_POLLING = 0.05


class Wakeup:
    """`pause` returns soon after any process has written to the database's log.

    The kernel reports a write a moment before the commit is visible, so `pause` returns a moment after the report, and
    then several times with growing delays. In a burst of writes it returns every 32 ms, however many they are.
    Without inotify (none left, or no log file) it returns every 50 ms.
    """

    def __init__(self, database: Path) -> None:
        self._written = asyncio.Event()
        self._delay = _FIRST_DELAY
        self._settle = _FIRST_DELAY
        self._returned = 0.0
        self._fd = _watch(database.with_name(database.name + "-wal"))

    async def pause(self) -> None:
        if self._fd is not None:
            asyncio.get_running_loop().add_reader(self._fd, self._on_write, self._fd)
        try:
            async with asyncio.timeout(self._delay):
                await self._written.wait()
        except TimeoutError:
            self._delay = min(self._delay * 2, _MAX_DELAY_POLLING if self._fd is None else _MAX_DELAY_INOTIFY)
        else:
            in_burst = time.monotonic() - self._returned < _BURST
            self._settle = min(self._settle * 2, _MAX_DELAY_BURST) if in_burst else _FIRST_DELAY
            await asyncio.sleep(self._settle)
            if self._fd is not None:
                _drain(self._fd)
            self._written.clear()
            self._delay = _FIRST_DELAY
            self._returned = time.monotonic()

    def __enter__(self) -> "Wakeup":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._fd is not None:
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)

    def _on_write(self, fd: int) -> None:
        """One report is enough until the next pause: a burst must not keep the loop from who writes."""
        asyncio.get_running_loop().remove_reader(fd)
        _drain(fd)
        self._written.set()


def _drain(fd: int) -> None:
    with suppress(BlockingIOError):
        os.read(fd, 65536)


def _watch(log: Path) -> int | None:
    """An inotify descriptor; None when the kernel gives none."""
    libc = ctypes.CDLL(None)
    fd = int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    if fd < 0:
        return None
    if libc.inotify_add_watch(fd, os.fsencode(log), _IN_MODIFY) < 0:
        os.close(fd)
        return None
    return fd
