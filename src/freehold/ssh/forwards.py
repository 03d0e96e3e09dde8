"""Forwarding, to and from ports and sockets inside the computer and nowhere else."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from asyncssh import ChannelOpenError, SSHListener, SSHTCPSession, SSHUNIXSession
from asyncssh.constants import OPEN_ADMINISTRATIVELY_PROHIBITED, OPEN_CONNECT_FAILED

from freehold.computer.tunnel import Listening, Tunnel
from freehold.errors import FreeholdError
from freehold.ssh.pump import Inlet, Outlet

if TYPE_CHECKING:
    from freehold.ssh.visit import Visit

INSIDE = frozenset({"localhost", "127.0.0.1", "::1", "freehold", ""})
ANYWHERE = INSIDE | {"*", "0.0.0.0", "::"}  # noqa: S104 - what a client may write; it is loopback inside whatever it says
LONGEST_PATH = 107


class _Relay:
    """One forwarded connection: a channel on this side, a tunnel on the other."""

    def __init__(self, visit: "Visit", tunnel: Tunnel) -> None:
        self._visit = visit
        self._tunnel = tunnel
        self._chan: Any = None
        self._inlet = Inlet()
        self._outlet = Outlet()
        self.done = asyncio.Event()

    def connection_made(self, chan: Any) -> None:
        self._chan = self._inlet.channel = chan
        chan.set_write_buffer_limits(high=512 * 1024, low=128 * 1024)
        self._visit.start(self._run(), "ssh forward")

    def connection_lost(self, exc: Exception | None) -> None:
        self._outlet.close()
        self._inlet.end()
        self._visit.channel_ended()
        self.done.set()

    def session_started(self) -> None:
        return

    def data_received(self, data: bytes, datatype: int | None) -> None:
        self._inlet.put(data)

    def eof_received(self) -> bool:
        self._inlet.end()
        return True

    def pause_writing(self) -> None:
        self._outlet.pause()

    def resume_writing(self) -> None:
        self._outlet.resume()

    async def _run(self) -> None:
        async with self._tunnel, asyncio.TaskGroup() as group:
            feeding = group.create_task(self._feed())
            gone = group.create_task(self.done.wait())
            showing = group.create_task(self._show())
            await asyncio.wait({gone, showing}, return_when=asyncio.FIRST_COMPLETED)
            if not self.done.is_set():  # the inside is done; what the client still says may still be wanted
                await asyncio.wait({gone, feeding}, return_when=asyncio.FIRST_COMPLETED)
            for task in (feeding, gone, showing):
                task.cancel()
        if not self._outlet.closed:
            self._chan.close()

    async def _feed(self) -> None:
        with contextlib.suppress(FreeholdError):
            while data := await self._inlet.take():
                await self._tunnel.write(data)
            await self._tunnel.write_eof()

    async def _show(self) -> None:
        with contextlib.suppress(FreeholdError):
            await self._outlet.carry(self._tunnel.read, self._chan.write)
        with contextlib.suppress(OSError):
            if not self._outlet.closed:
                self._chan.write_eof()


class TcpRelay(_Relay, SSHTCPSession[bytes]):
    pass


class UnixRelay(_Relay, SSHUNIXSession[bytes]):
    pass


async def connect_port(visit: "Visit", host: str, port: int) -> TcpRelay:
    """`-L` and `-D`: a name that is not this computer's own is refused, whatever it might resolve to."""
    if host.lower().rstrip(".") not in INSIDE:
        visit.channel_ended()
        raise ChannelOpenError(
            OPEN_ADMINISTRATIVELY_PROHIBITED, "only ports inside the computer are forwarded: say localhost"
        )
    return TcpRelay(visit, await _reach(visit, port))


async def connect_socket(visit: "Visit", path: str) -> UnixRelay:
    if not path.startswith("/") or len(path.encode(errors="replace")) > LONGEST_PATH or "\0" in path:
        visit.channel_ended()
        raise ChannelOpenError(OPEN_ADMINISTRATIVELY_PROHIBITED, "not an absolute path inside the computer")
    return UnixRelay(visit, await _reach(visit, path))


async def _reach(visit: "Visit", where: int | str) -> Tunnel:
    try:
        tunnel = await visit.house.computer.forward(where)
    except FreeholdError as error:
        visit.channel_ended()
        raise ChannelOpenError(OPEN_CONNECT_FAILED, error.message[:200]) from None
    if visit.gone:  # there is no channel any more that would close it
        await tunnel.close()
        raise ChannelOpenError(OPEN_CONNECT_FAILED, "the connection is gone")
    return tunnel


class InsideListener(SSHListener):
    """`-R`: a port or socket inside, whose connections go to the client."""

    def __init__(self, visit: "Visit", open_channel: Callable[[Tunnel], Awaitable[_Relay]]) -> None:
        super().__init__()
        self._visit = visit
        self._open_channel = open_channel
        self._listening: Listening | None = None
        self._closed = asyncio.Event()

    async def listen(self, where: int | str) -> bool:
        try:
            self._listening = await self._visit.house.computer.listen(where, self._serve)
        except FreeholdError:
            return False
        return True

    def get_port(self) -> int:
        return self._listening.port if self._listening is not None else 0

    def close(self) -> None:
        if not self._closed.is_set():
            self._closed.set()
            self._visit.listener_ended()
            if self._listening is not None:
                self._visit.start(self._listening.close(), "ssh listener")

    async def wait_closed(self) -> None:
        await self._closed.wait()

    async def _serve(self, tunnel: Tunnel) -> None:
        if not self._visit.take_channel():
            return
        try:
            relay = await self._open_channel(tunnel)
        except (ChannelOpenError, OSError):
            self._visit.channel_ended()
            return
        await relay.done.wait()
