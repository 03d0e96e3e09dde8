"""Copies data between an SSH channel and a process in the computer, with back-pressure."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Protocol

MAX_BUFFERED_BYTES = 1024 * 1024
"""With more unread input than this, the channel is paused."""

DISCARD_INTERVAL = 0.1
"""Seconds between two reads of output that is discarded because the client has left."""


class PausableChannel(Protocol):
    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...


class ChannelInput:
    """A buffer for the input of a channel, with one reader. `append` and `end` never wait."""

    def __init__(self) -> None:
        self._parts: deque[bytes] = deque()
        self._size = 0
        self._ended = False
        self._paused = False
        self._waiter: asyncio.Future[None] | None = None
        self.channel: PausableChannel | None = None

    def append(self, data: bytes) -> None:
        self._parts.append(data)
        self._size += len(data)
        if self._size > MAX_BUFFERED_BYTES and not self._paused and self.channel is not None:
            self._paused = True
            self.channel.pause_reading()
        self._wake_reader()

    def end(self) -> None:
        self._ended = True
        self._wake_reader()

    async def read(self) -> bytes:
        """All buffered data, at least one byte. Empty at the end of input."""
        while not self._parts:
            if self._ended:
                return b""
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        data = self._parts.popleft() if len(self._parts) == 1 else b"".join(self._parts)
        self._parts.clear()
        self._size = 0
        if self._paused and self.channel is not None:
            self._paused = False
            self.channel.resume_reading()
        return data

    def _wake_reader(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class ChannelOutput:
    """The output of a channel: can be paused, and is `closed` when the client has left."""

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

    async def copy(self, read: Callable[[], Awaitable[bytes]], write: Callable[[bytes], None]) -> None:
        """Copy to the channel until the end of the output. After the channel has closed, output is discarded slowly,
        so that a program that keeps writing uses little processor time."""
        while data := await read():
            if not self._open.is_set():
                await self._open.wait()
            if self.closed:
                await asyncio.sleep(DISCARD_INTERVAL)
            else:
                write(data)
