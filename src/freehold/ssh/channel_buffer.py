"""Between an SSH channel and what is inside, each at the pace of the slower."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol

HELD = 1024 * 1024
"""What a channel may have brought that is not yet passed on; past it the channel is told to wait."""

UNHEARD = 0.1
"""Seconds between two pieces of output that nobody listens to."""


class Pausing(Protocol):
    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class Inlet:
    """What a channel brings, taken by one reader. `put` and `end` never wait."""

    def __init__(self) -> None:
        self._parts: deque[bytes] = deque()
        self._held = 0
        self._ended = False
        self._paused = False
        self._wake: asyncio.Future[None] | None = None
        self.channel: Pausing | None = None

    def put(self, data: bytes) -> None:
        self._parts.append(data)
        self._held += len(data)
        if self._held > HELD and not self._paused and self.channel is not None:
            self._paused = True
            self.channel.pause_reading()
        self._rouse()

    def end(self) -> None:
        self._ended = True
        self._rouse()

    async def take(self) -> bytes:
        """All that is there, at least one byte; empty at the end."""
        while not self._parts:
            if self._ended:
                return b""
            self._wake = asyncio.get_running_loop().create_future()
            await self._wake
        data = self._parts.popleft() if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        self._held = 0
        if self._paused and self.channel is not None:
            self._paused = False
            self.channel.resume_reading()
        return data

    def _rouse(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


class Outlet:
    """The way into a channel: `ready` while it takes more, and `closed` once it never will."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._open.set()
        self.closed = False

    def pause(self) -> None:
        self._open.clear()

    def resume(self) -> None:
        self._open.set()

    def close(self) -> None:
        self.closed = True
        self._open.set()

    async def carry(self, read: Callable[[], Awaitable[bytes]], write: Callable[[bytes], None]) -> None:
        """From inside to the channel until the end. What comes after the channel's own end is thrown away, slowly:
        a program that goes on talking to nobody is held back and costs nothing."""
        while data := await read():
            if not self._open.is_set():
                await self._open.wait()
            if self.closed:
                await asyncio.sleep(UNHEARD)
            else:
                write(data)
