"""Connections of a helper program to the servers that it may reach, and to nothing else.

The helper has a network of its own that contains only listening sockets, one for each server. They were made there and
handed out here, so this side accepts the connections and makes the real ones.
"""

import asyncio
import contextlib
import ipaddress
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import urlsplit

from freehold.errors import FreeholdError

CONNECT_TIMEOUT = 10.0
MAX_CONNECTIONS = 64
CHUNK = 64 * 1024


@dataclass(frozen=True)
class ServerAddress:
    """A server that a helper may reach."""

    host: str
    port: int

    @property
    def is_address(self) -> bool:
        try:
            ipaddress.ip_address(self.host)
        except ValueError:
            return False
        return True


def read_endpoint(text: str) -> ServerAddress:
    """`https://host`, `http://host:9000` or `host:22`; a bare host has port 443. Raises `computer.mount-refused`."""
    try:
        parts = urlsplit(text if "://" in text else f"https://{text}")
        port = parts.port or (80 if parts.scheme == "http" else 443)
        host = (parts.hostname or "").rstrip(".")
        host.encode("ascii")
    except ValueError:
        host, port = "", 0
    if not host or len(host) > 253 or any(not (one.isalnum() or one in ".-:_") for one in host):
        raise FreeholdError(
            "computer.mount-refused",
            f"{text[:200]!r} is not the address of a server",
            hint='endpoint = "https://s3.example.org"',
            kind="invalid",
        )
    return ServerAddress(host, port)


class HelperServers(Protocol):
    """What a helper finds in its network. `last_failure` is why the last thing that it wanted could not be had."""

    @property
    def last_failure(self) -> str | None: ...

    def serve(self, listeners: Sequence[socket.socket]) -> AbstractAsyncContextManager[None]:
        """Answer on `listeners` for as long as the context lasts. Owns them."""
        ...


class EndpointRelay:
    """Counts its connections, and keeps the reason why the last one failed."""

    def __init__(self, endpoints: Sequence[ServerAddress]) -> None:
        self._endpoints = endpoints
        self._open = 0
        self.last_failure: str | None = None

    @contextlib.asynccontextmanager
    async def serve(self, listeners: Sequence[socket.socket]) -> AsyncIterator[None]:
        """Accept on `listeners`, one for each endpoint, for as long as the context lasts. Owns them."""
        tasks: set[asyncio.Task[None]] = set()
        ended = asyncio.Event()
        async with contextlib.AsyncExitStack() as stack:
            stack.push_async_callback(_cancel, tasks)
            stack.callback(ended.set)
            for endpoint, listener in zip(self._endpoints, listeners, strict=True):

                def accept(
                    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, endpoint: ServerAddress = endpoint
                ) -> None:
                    if ended.is_set():  # the kernel had accepted it before the end
                        writer.transport.abort()
                        return
                    tasks.add(task := asyncio.ensure_future(self._carry(endpoint, reader, writer)))
                    # Not in the task: one that is cancelled before it has begun runs nothing.
                    task.add_done_callback(lambda _: writer.transport.abort())
                    task.add_done_callback(tasks.discard)

                server = await asyncio.start_server(accept, sock=listener, limit=CHUNK)
                stack.callback(server.close)
            yield

    async def _carry(self, endpoint: ServerAddress, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open > MAX_CONNECTIONS:
                return
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT):
                    far_reader, far_writer = await asyncio.open_connection(endpoint.host, endpoint.port, limit=CHUNK)
            except (OSError, UnicodeError) as error:  # a timeout is an OSError
                self.last_failure = f"{endpoint.host}:{endpoint.port} cannot be reached: {_describe(error)}"
                return
            self.last_failure = None
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(_copy(reader, far_writer))
                    both.create_task(_copy(far_reader, writer))
            finally:
                far_writer.transport.abort()
        finally:
            self._open -= 1


async def _cancel(tasks: set[asyncio.Task[None]]) -> None:
    for task in list(tasks):
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _describe(error: OSError | UnicodeError) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {CONNECT_TIMEOUT:g} s"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
