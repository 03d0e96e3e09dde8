"""Standard input and output as the pipe of a connection."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

CHUNK = 64 * 1024


class StdioPipe:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def read(self) -> bytes:
        return await self._reader.read(CHUNK)

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


@asynccontextmanager
async def open_stdio() -> AsyncIterator[StdioPipe]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin.buffer)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout.buffer)
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    try:
        yield StdioPipe(reader, writer)
    finally:
        writer.close()
