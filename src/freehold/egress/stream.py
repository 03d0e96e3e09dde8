"""A duplex stream of bytes, from the computer's link or from a socket."""

import asyncio
import select
from collections.abc import Iterable
from ipaddress import ip_address
from typing import TYPE_CHECKING, Protocol, SupportsIndex

from freehold.egress.names import IPAddress
from freehold.errors import FreeholdError

if TYPE_CHECKING:
    from ssl import SSLContext

CHUNK = 64 * 1024
FLUSH_TIMEOUT = 0.25
"""Seconds that a closing socket may take to send its buffer."""


class ByteStream(Protocol):
    """The streams of the link have this interface, and `SocketStream` gives it to a socket.

    `write` waits while the other end is slow. This is the only back-pressure.
    """

    async def read(self, n: int = ..., /) -> bytes:
        """At most `n` bytes; b"" when the other end has ended its half."""
        ...

    async def write(self, data: bytes, /) -> None: ...

    async def write_eof(self) -> None:
        """Ends our half. Reading is still possible."""
        ...

    async def close(self) -> None:
        """Idempotent."""
        ...


class CountingReader(asyncio.StreamReader):
    """Counts what has arrived, so that it is known whether bytes wait to be read."""

    def __init__(self) -> None:
        super().__init__(limit=CHUNK, loop=asyncio.get_running_loop())
        self.received = 0

    def feed_data(self, data: Iterable[SupportsIndex]) -> None:
        whole = bytes(data)
        self.received += len(whole)
        super().feed_data(whole)


class SocketStream:
    """An asyncio socket as a `Stream`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._taken = 0

    @property
    def peer(self) -> IPAddress:
        """The address at the other end."""
        return ip_address(self._writer.get_extra_info("peername")[0])

    @property
    def is_quiet(self) -> bool:
        """Whether the connection is open and the other end has sent nothing that was not read, not even its end.

        Only for a stream of `connect_socket`. Bytes that the kernel holds count too.
        """
        assert isinstance(self._reader, CountingReader)
        if self._reader.received != self._taken or self._reader.at_eof() or self._writer.is_closing():
            return False
        waiting = select.poll()
        waiting.register(self._writer.get_extra_info("socket").fileno(), select.POLLIN)
        return not waiting.poll(0)

    async def start_tls(self, context: "SSLContext", name: str) -> None:
        """Switches to TLS. The other end must have a certificate for `name`."""
        await self._writer.start_tls(context, server_hostname=name)

    async def read(self, n: int = CHUNK, /) -> bytes:
        data = await self._reader.read(n)
        self._taken += len(data)
        return data

    async def write(self, data: bytes, /) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def write_eof(self) -> None:
        if self._writer.can_write_eof() and not self._writer.is_closing():
            self._writer.write_eof()

    async def close(self) -> None:
        """Idempotent. Unsent data gets `FLUSH_TIMEOUT`, because a revoked connection must end."""
        self._writer.close()
        try:
            async with asyncio.timeout(FLUSH_TIMEOUT):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            self.abort()

    def abort(self) -> None:
        """Closes at once. Unsent data is lost. Idempotent."""
        self._writer.transport.abort()


async def connect_socket(address: IPAddress, port: int) -> SocketStream:
    """Raises OSError."""
    loop = asyncio.get_running_loop()
    reader = CountingReader()
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport, _ = await loop.create_connection(lambda: protocol, str(address), port)
    return SocketStream(reader, asyncio.StreamWriter(transport, protocol, reader, loop))


class PushbackReader:
    """The reading half of a stream. Bytes that were read too far can be put back."""

    def __init__(self, stream: ByteStream) -> None:
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
    def has_buffered(self) -> bool:
        """Whether bytes can be read without waiting."""
        return self._at < len(self._held)

    def put_back(self, data: bytes) -> None:
        # Mostly the bytes that were just read come back. Stepping back is cheap for many small messages in one large read.
        if self._held.endswith(data, 0, self._at):
            self._at -= len(data)
        else:
            self._held, self._at = data + self._held[self._at :], 0

    async def read_into(self, buffer: bytearray, limit: int) -> None:
        """Reads at least one more byte. Raises `egress.cut-short` at the end and `egress.too-long` beyond `limit`."""
        if len(buffer) >= limit:
            raise FreeholdError("egress.too-long", f"The message is longer than {limit} bytes")
        more = await self.read(min(CHUNK, limit - len(buffer)))
        if not more:
            raise FreeholdError("egress.cut-short", "The connection ended in the middle of a message")
        buffer += more

    async def read_through(self, mark: bytes, limit: int) -> bytes:
        """Everything up to and including `mark`. What follows stays in the buffer."""
        buffer = bytearray()
        while True:
            # Only new bytes are searched, so a message sent byte by byte takes linear time.
            start = max(0, len(buffer) - len(mark) + 1)
            await self.read_into(buffer, limit)
            found = buffer.find(mark, start)
            if found >= 0:
                end = found + len(mark)
                self.put_back(bytes(buffer[end:]))
                return bytes(buffer[:end])
