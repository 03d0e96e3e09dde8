"""Stands between a client library and the Unix socket of a server, and counts what the server sends.

The kernel counts the bytes of a TCP connection, but not those of a Unix socket, and a library may read a whole answer into
memory before it hands anything out.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast


class RelayEnd(asyncio.Protocol):
    """One of the two connections. What it receives goes out by the other one, which it ends when it ends."""

    def __init__(self) -> None:
        self.received = 0
        self.other: RelayEnd = self
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self.transport is not None:
            transport.close()  # a second client
            return
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        if self.other.transport is not None:
            self.other.transport.write(data)

    def pause_writing(self) -> None:
        if self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other.transport is not None and not self.other.transport.is_closing():
            self.other.transport.resume_reading()

    def connection_lost(self, _error: Exception | None) -> None:
        self.other.end()

    def end(self) -> None:
        if self.transport is not None:
            self.transport.close()


class SocketRelay:
    """For one client. It ends when the client or the server ends it."""

    def __init__(self) -> None:
        self._client, self._server = RelayEnd(), RelayEnd()
        self._client.other, self._server.other = self._server, self._client

    @property
    def received(self) -> int:
        """The bytes that the server has sent."""
        return self._server.received

    @asynccontextmanager
    async def listen(self, server: Path) -> AsyncIterator[Path]:
        """A folder with a socket of the same name as the server's, in which a client can connect. Raises OSError."""
        loop = asyncio.get_running_loop()
        await loop.create_unix_connection(lambda: self._server, str(server))
        try:
            with tempfile.TemporaryDirectory(prefix="freehold-") as folder:
                listening = await loop.create_unix_server(lambda: self._client, str(Path(folder) / server.name))
                try:
                    yield Path(folder)
                finally:
                    listening.close()
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Idempotent."""
        self._server.end()
        self._client.end()
