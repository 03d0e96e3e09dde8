"""The two ends of a relay: a duplex stream of bytes, whatever carries it."""

import asyncio
from ipaddress import ip_address
from typing import TYPE_CHECKING, Protocol

from freehold.egress.names import IPAddress
from freehold.errors import FreeholdError

if TYPE_CHECKING:
    from ssl import SSLContext

CHUNK = 64 * 1024
LAST_WORDS = 0.25
"""How long a closing socket may take to send what it was given, in seconds."""


class Stream(Protocol):
    """What the link gives us, and what a socket is wrapped into.

    `write` waits while the other end is slow: that is the only back-pressure there is, and it is enough.
    """

    async def read(self, n: int = ..., /) -> bytes:
        """At most `n` bytes; b"" when the other side has ended its half."""
        ...

    async def write(self, data: bytes, /) -> None: ...

    async def write_eof(self) -> None:
        """Ends our half; reading goes on."""
        ...

    async def close(self) -> None:
        """Idempotent."""
        ...


class SocketStream:
    """An asyncio socket as a `Stream`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @property
    def peer(self) -> IPAddress:
        """The address at the other end."""
        return ip_address(self._writer.get_extra_info("peername")[0])

    @property
    def ended(self) -> bool:
        """Whether the other side has hung up."""
        return self._reader.at_eof() or self._writer.is_closing()

    async def start_tls(self, context: "SSLContext", name: str) -> None:
        """Goes on encrypted, once the other side has proved that it is `name`."""
        await self._writer.start_tls(context, server_hostname=name)

    async def read(self, n: int = CHUNK, /) -> bytes:
        return await self._reader.read(n)

    async def write(self, data: bytes, /) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def write_eof(self) -> None:
        if self._writer.can_write_eof() and not self._writer.is_closing():
            self._writer.write_eof()

    async def close(self) -> None:
        """Idempotent. What is still unsent gets a moment, no more: a revoked connection must end."""
        self._writer.close()
        try:
            async with asyncio.timeout(LAST_WORDS):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self._writer.transport.abort()


class Inlet:
    """The reading half of a stream, with what was read too far put back."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._held = b""
        self._at = 0

    async def read(self, n: int = CHUNK) -> bytes:
        if self._at >= len(self._held):
            self._held, self._at = await self._stream.read(CHUNK), 0
        taken = self._held[self._at : self._at + n]
        self._at += len(taken)
        return taken

    @property
    def holds_more(self) -> bool:
        """Whether something is here already, to be read without waiting."""
        return self._at < len(self._held)

    def put_back(self, data: bytes) -> None:
        # What comes back is mostly what was just taken: stepping back keeps many small messages in one big read cheap.
        if self._held.endswith(data, 0, self._at):
            self._at -= len(data)
        else:
            self._held, self._at = data + self._held[self._at :], 0

    async def read_into(self, buffer: bytearray, limit: int) -> None:
        """At least one byte more. Raises `egress.cut-short` at the end and `egress.too-long` beyond `limit`."""
        if len(buffer) >= limit:
            raise FreeholdError("egress.too-long", f"More than {limit} bytes came where fewer were expected")
        more = await self.read(min(CHUNK, limit - len(buffer)))
        if not more:
            raise FreeholdError("egress.cut-short", "The connection ended in the middle of a message")
        buffer += more

    async def read_through(self, mark: bytes, limit: int) -> bytes:
        """Everything up to and with `mark`; what follows it stays for the next reader."""
        buffer = bytearray()
        while True:
            # Only what is new is searched: a message sent byte by byte must not cost its square.
            start = max(0, len(buffer) - len(mark) + 1)
            await self.read_into(buffer, limit)
            found = buffer.find(mark, start)
            if found >= 0:
                end = found + len(mark)
                self.put_back(bytes(buffer[end:]))
                return bytes(buffer[:end])
