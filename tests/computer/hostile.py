"""A guest that sends whatever a test wants."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from freehold.computer.library import frames

Script = Callable[["Peer"], Awaitable[None]]


class Peer:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def greet(self, words: bytes = frames.PREAMBLE) -> None:
        self._writer.write(words)
        await self._reader.readexactly(len(frames.PREAMBLE))

    async def receive(self) -> tuple[int, int, bytes]:
        size, kind, channel = frames.HEADER.unpack(await self._reader.readexactly(frames.HEADER.size))
        return kind, channel, await self._reader.readexactly(size)

    async def receive_open(self) -> tuple[int, bytes]:
        while True:
            kind, channel, payload = await self.receive()
            if kind == frames.OPEN:
                return channel, payload

    def send(self, kind: int, channel: int, payload: bytes = b"") -> None:
        self._writer.write(frames.encode_frame(kind, channel, payload))

    def send_raw(self, data: bytes) -> None:
        self._writer.write(data)

    async def until_cut(self) -> None:
        """Return when the host has closed the link."""
        try:
            while await self._reader.read(65536):
                pass
        except ConnectionError:
            return


@asynccontextmanager
async def hostile_guest(path: Path, script: Script) -> AsyncIterator[Path]:
    """Run the script for every client that connects."""

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await script(Peer(reader, writer))
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_unix_server(play, path)
    try:
        yield path
    finally:
        server.close()
        await server.wait_closed()
