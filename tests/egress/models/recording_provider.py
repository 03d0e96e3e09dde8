"""A provider that records every byte, and reads requests as lenient servers do."""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.egress.models.gateway_harness import GatewayHarness, run_gateway

from freehold.manifest.sections.models import ModelSection

MARKER = re.compile(rb"marker-[a-z0-9-]+")


@dataclass(frozen=True)
class SeenRequest:
    """A request as the provider understood it."""

    head: bytes
    body: bytes

    @property
    def line(self) -> str:
        return self.head.partition(b"\r\n")[0].decode("latin-1")


@dataclass
class RecordingProvider:
    """What arrived: all bytes by connection, and the requests that a lenient server sees in them."""

    port: int = 0
    connections: list[bytearray] = field(default_factory=list)
    requests: list[SeenRequest] = field(default_factory=list)

    @property
    def raw(self) -> bytes:
        return b"".join(self.connections)


Answer = Callable[[SeenRequest, asyncio.StreamWriter], Awaitable[None]]


async def answer_with_marker(request: SeenRequest, writer: asyncio.StreamWriter) -> None:
    """Answers with the marker that the request contains."""
    found = MARKER.search(request.body)
    body = b'{"line": "%b", "said": "%b"}' % (request.line.encode(), found[0] if found else b"")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


class RecordingReader:
    """Reads one connection as a lenient server does: GET and HEAD have no body, whatever their head says."""

    def __init__(self, reader: asyncio.StreamReader, record: bytearray) -> None:
        self._reader = reader
        self._record = record
        self._rest = b""

    async def read_request(self) -> SeenRequest | None:
        while b"\r\n\r\n" not in self._rest:
            if not await self._more():
                return None
        head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        found = re.search(rb"(?i)\r\ncontent-length: *([0-9]+)", head)
        length = int(found[1]) if found and not head.startswith((b"GET", b"HEAD")) else 0
        while len(self._rest) < length:
            if not await self._more():
                return None
        body, self._rest = self._rest[:length], self._rest[length:]
        return SeenRequest(head, body)

    async def _more(self) -> bool:
        data = await self._reader.read(65536)
        self._record += data
        self._rest += data
        return bool(data)


@asynccontextmanager
async def recording_provider(answer: Answer = answer_with_marker) -> AsyncIterator[RecordingProvider]:
    seen = RecordingProvider()
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        record = bytearray()
        seen.connections.append(record)
        requests = RecordingReader(reader, record)
        with contextlib.suppress(OSError, asyncio.CancelledError):
            while (request := await requests.read_request()) is not None:
                seen.requests.append(request)
                await answer(request, writer)
                await writer.drain()
        writer.close()
        tasks.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    seen.port = server.sockets[0].getsockname()[1]
    try:
        yield seen
    finally:
        server.close()
        for task in tuple(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


@asynccontextmanager
async def gateway_to(folder: Path, port: int, **changes: object) -> AsyncIterator[GatewayHarness]:
    """A model gateway whose provider `openai` is the server at this port."""
    url = f"http://127.0.0.1:{port}/v1"
    section = ModelSection.model_validate(
        {"kind": "openai-compatible", "base_url": url, "key": "secret:real", **changes}
    )
    async with run_gateway(folder, models={"openai": section}) as gateway:
        yield gateway
