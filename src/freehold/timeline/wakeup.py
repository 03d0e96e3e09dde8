"""Waits until the database may have changed: told by the kernel where it can, by asking again where it cannot."""

import asyncio
import ctypes
import os
from pathlib import Path
from types import TracebackType

_IN_MODIFY = 0x2
_EAGER = 0.002
_TOLD = 1.0
_UNTOLD = 0.05


class Wakeup:
    """`pause` returns soon after a write to the database's log, by any process.

    The kernel tells of the write a moment before the commit can be seen, so that after each word from it we look
    again and again, ever more slowly. Where it tells nothing (no inotify left, no log) we look every 50 ms.
    """

    def __init__(self, database: Path) -> None:
        self._told = asyncio.Event()
        self._delay = _EAGER
        self._fd = _watch(database.with_name(database.name + "-wal"))
        if self._fd is not None:
            asyncio.get_running_loop().add_reader(self._fd, self._hear, self._fd)

    async def pause(self) -> None:
        try:
            async with asyncio.timeout(self._delay):
                await self._told.wait()
        except TimeoutError:
            self._delay = min(self._delay * 2, _UNTOLD if self._fd is None else _TOLD)
        else:
            self._told.clear()
            self._delay = _EAGER

    def __enter__(self) -> "Wakeup":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._fd is not None:
            asyncio.get_running_loop().remove_reader(self._fd)
            os.close(self._fd)

    def _hear(self, fd: int) -> None:
        os.read(fd, 65536)
        self._told.set()


def _watch(log: Path) -> int | None:
    """An inotify descriptor, or None where the kernel gives none."""
    libc = ctypes.CDLL(None)
    fd = int(libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
    if fd < 0:
        return None
    if libc.inotify_add_watch(fd, os.fsencode(log), _IN_MODIFY) < 0:
        os.close(fd)
        return None
    return fd
