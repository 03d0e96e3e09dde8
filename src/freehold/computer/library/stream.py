"""Bytes from the computer. The sender waits while they are not read."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator

from freehold.computer.library.channel import Channel
from freehold.errors import FreeholdError


class ChannelStream:
    """One direction of a channel. Holds at most one window of unread bytes."""

    def __init__(self) -> None:
        self._parts: deque[bytes] = deque()
        self._ended = False
        self._error: FreeholdError | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._channel: Channel | None = None
        self._number = 0

    def attach(self, channel: Channel, number: int) -> None:
        self._channel, self._number = channel, number

    def feed(self, payload: bytes) -> None:
        self._parts.append(payload)
        self._wake()

    def end(self, error: FreeholdError | None = None) -> None:
        self._ended = True
        self._error = self._error or error
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def read(self, most: int = 256 * 1024) -> bytes:
        """The next bytes, at least one; empty at the end. Raises if the link was lost."""
        while not self._parts:
            if self._error is not None:
                raise self._error
            if self._ended:
                return b""
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        part = self._parts.popleft()
        if len(part) > most:
            self._parts.appendleft(part[most:])
            part = part[:most]
        if self._channel is not None:
            self._channel.grant(self._number, len(part))
        return part

    async def read_all(self, most: int = 64 * 1024 * 1024) -> bytes:
        """Everything to the end. More than `most` bytes raise `computer.too-large`."""
        parts, size = [], 0
        while part := await self.read():
            size += len(part)
            if size > most:
                raise FreeholdError("computer.too-large", f"The output is longer than {most} bytes")
            parts.append(part)
        return b"".join(parts)

    async def read_exactly(self, size: int) -> bytes:
        """`size` bytes, or `asyncio.IncompleteReadError`."""
        parts: list[bytes] = []
        missing = size
        while missing:
            part = await self.read(missing)
            if not part:
                raise asyncio.IncompleteReadError(b"".join(parts), size)
            parts.append(part)
            missing -= len(part)
        return b"".join(parts)

    async def lines(self, most: int = 16 * 1024 * 1024) -> AsyncIterator[bytes]:
        """Lines with their newline; the last may have none. A line longer than `most` raises `computer.too-large`."""
        rest = bytearray()
        while part := await self.read():
            start = len(rest)
            rest += part
            done = 0
            while (at := rest.find(b"\n", max(start, done))) >= 0:
                yield bytes(rest[done : at + 1])
                done = at + 1
            del rest[:done]
            if len(rest) > most:
                raise FreeholdError("computer.too-large", f"A line is longer than {most} bytes")
        if rest:
            yield bytes(rest)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks()

    async def _chunks(self) -> AsyncIterator[bytes]:
        while part := await self.read():
            yield part
