"""Connections to ports inside, and connections from inside to handlers on the host."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Any, Self

from freehold.computer.library import reply
from freehold.computer.library.channel import Channel
from freehold.computer.library.connection import ComputerConnection
from freehold.computer.library.link import Link
from freehold.computer.library.stream import ChannelStream
from freehold.errors import FreeholdError

_log = logging.getLogger(__name__)
TunnelHandler = Callable[["Tunnel"], Awaitable[None]]


class Tunnel:
    """One connection to or from the computer, in both directions. Programs inside write its bytes: never trust them."""

    def __init__(self) -> None:
        self._stream = ChannelStream()
        self._channel: Channel | None = None
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._error: FreeholdError | None = None

    @classmethod
    async def connect(cls, link: Link, request: dict[str, Any]) -> "Tunnel":
        tunnel = cls()
        with link.use.hold():
            tunnel.attach(link.open(request, tunnel))
            try:
                await tunnel._opened
            except asyncio.CancelledError:
                await tunnel.close()
                raise
        if tunnel._error is not None:
            raise tunnel._error
        return tunnel

    def attach(self, channel: Channel) -> None:
        self._channel = channel
        self._stream.attach(channel, 0)

    async def read(self, most: int = 256 * 1024) -> bytes:
        """The next bytes, at least one; empty at the end."""
        return await self._stream.read(most)

    async def read_exactly(self, size: int) -> bytes:
        return await self._stream.read_exactly(size)

    def lines(self, most: int = 64 * 1024) -> AsyncIterator[bytes]:
        return self._stream.lines(most)

    async def write(self, data: bytes) -> None:
        """Waits while the other side does not read. Raises `computer.ended` if it has closed."""
        if self._channel is None or self._channel.is_closed:
            raise FreeholdError("computer.ended", "The other side closed the connection")
        await self._channel.write(data)

    async def write_eof(self) -> None:
        """Close the writing direction; reading goes on."""
        if self._channel is not None:
            self._channel.send_end()

    async def close(self) -> None:
        """Idempotent."""
        if self._channel is not None:
            self._channel.close()
        self._finish(None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # Called by the channel

    def data(self, stream: int, payload: memoryview) -> None:
        self._stream.feed(bytes(payload))

    def end(self, stream: int) -> None:
        self._stream.end()

    def message(self, message: dict[str, Any]) -> None:
        self._error = self._error or reply.read_error(message)
        if not self._opened.done():
            self._opened.set_result(None)

    def closed(self) -> None:
        self._finish(None)

    def lost(self, error: FreeholdError) -> None:
        self._error = self._error or error
        self._finish(error)

    def _finish(self, error: FreeholdError | None) -> None:
        self._stream.end(error)
        if not self._opened.done():
            self._opened.set_result(None)


class ComputerListener:
    """A port inside whose connections are served by a handler on the host, on this link and each later one."""

    def __init__(self, connection: ComputerConnection, request: dict[str, Any], handler: TunnelHandler) -> None:
        self._connection = connection
        self._request = request
        self._handler = handler
        self._tunnel: Tunnel | None = None
        self._key: tuple[int, int] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0
        self.closed = False

    async def open(self) -> None:
        await self._listen(self._connection.link)
        self._connection.restored.append(self._listen)

    async def close(self) -> None:
        """Stop listening and close the open connections. Idempotent."""
        self.closed = True
        if self._listen in self._connection.restored:
            self._connection.restored.remove(self._listen)
        self._forget()
        if self._tunnel is not None:
            await self._tunnel.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _listen(self, link: Link) -> None:
        self._forget()
        tunnel = _ListenerTunnel()
        channel = link.open(self._request, tunnel)
        tunnel.attach(channel)
        self._key = (id(link), channel.number)
        self._connection.accepts[self._key] = self._accept_connection
        try:
            with link.use.hold():
                self.port = await tunnel.wait_listening()
        except BaseException:
            self._forget()
            raise
        self._tunnel = tunnel

    def _forget(self) -> None:
        if self._key is not None:
            self._connection.accepts.pop(self._key, None)

    def _accept_connection(self, link: Link, number: int) -> None:
        tunnel = Tunnel()
        tunnel.attach(link.adopt(number, tunnel))
        task = asyncio.get_running_loop().create_task(self._serve(tunnel), name="connection from the computer")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, tunnel: Tunnel) -> None:
        try:
            await self._handler(tunnel)
        except FreeholdError as error:
            _log.info("a connection from the computer ended: %s", error)
        except Exception:
            _log.exception("the handler of a connection from the computer failed")
        finally:
            await tunnel.close()


class _ListenerTunnel(Tunnel):
    """The receiver of a listening channel. Its only message is the port."""

    def __init__(self) -> None:
        super().__init__()
        self._port = 0

    def message(self, message: dict[str, Any]) -> None:
        if "ok" in message:
            self._port = reply.read_int(message, "ok", most=65535)
        super().message(message)

    async def wait_listening(self) -> int:
        await self._opened
        if self._error is not None:
            raise self._error
        return self._port
