"""The server's end of TLS on any stream of bytes."""

import asyncio
import ssl
from contextlib import suppress

from freehold.egress.stream import CHUNK, ByteStream, PushbackReader


class TlsServerStream:
    """What a client sends and gets inside its TLS. `accept` comes first."""

    def __init__(self, stream: ByteStream, reader: PushbackReader, context: ssl.SSLContext) -> None:
        self._stream = stream
        self._reader = reader
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._has_ended = False
        self._flushing = asyncio.Lock()

    async def accept(self) -> None:
        """The handshake. Raises OSError when the client does not trust the certificate or speaks no TLS."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                await self._flush()
                if not await self._receive():
                    raise ConnectionError("the client ended in the middle of the TLS handshake") from None
            except ssl.SSLError:
                await self._flush()
                raise
            else:
                await self._flush()
                return

    async def read(self, n: int = CHUNK, /) -> bytes:
        while not self._has_ended:
            try:
                data = self._tls.read(n)
            except ssl.SSLWantReadError:
                await self._flush()
                if not await self._receive():
                    self._has_ended = True
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                self._has_ended = True
            else:
                if data:
                    return data
                self._has_ended = True
        return b""

    async def write(self, data: bytes, /) -> None:
        for at in range(0, len(data), CHUNK):
            self._tls.write(data[at : at + CHUNK])
            await self._flush()

    async def write_eof(self) -> None:
        """Says that nothing follows. Nothing can be read afterwards that the client had not sent yet."""
        with suppress(ssl.SSLError):  # it wants the client's own end, which may never come
            self._tls.unwrap()
        await self._flush()
        await self._stream.write_eof()

    async def close(self) -> None:
        await self._stream.close()

    async def _receive(self) -> bool:
        data = await self._reader.read()
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()
        return bool(data)

    async def _flush(self) -> None:
        async with self._flushing:  # records keep their order when a reader and a writer flush at once
            if self._outgoing.pending:
                await self._stream.write(self._outgoing.read())
