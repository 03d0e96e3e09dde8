"""Forwards to and from ports and sockets of the computer, and of nothing else."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from asyncssh import ChannelOpenError, SSHListener, SSHTCPSession, SSHUNIXSession
from asyncssh.constants import OPEN_ADMINISTRATIVELY_PROHIBITED, OPEN_CONNECT_FAILED

from freehold.computer.library.tunnel import ComputerListener, Tunnel
from freehold.errors import FreeholdError
from freehold.ssh.channel_buffer import ChannelInput, ChannelOutput

if TYPE_CHECKING:
    from freehold.ssh.connection import SshConnection

COMPUTER_HOSTS = frozenset({"localhost", "127.0.0.1", "::1", "freehold", ""})
LISTEN_HOSTS = COMPUTER_HOSTS | {"*", "0.0.0.0", "::"}  # noqa: S104 - accepted from a client; the computer listens on its loopback in each case
MAX_SOCKET_PATH_BYTES = 107


class _Forward:
    """One forwarded connection: an SSH channel to the client and a tunnel into the computer."""

    def __init__(self, connection: "SshConnection", tunnel: Tunnel) -> None:
        self._connection = connection
        self._tunnel = tunnel
        self._chan: Any = None
        self._input = ChannelInput()
        self._output = ChannelOutput()
        self.closed = asyncio.Event()

    def connection_made(self, chan: Any) -> None:
        self._chan = self._input.channel = chan
        chan.set_write_buffer_limits(high=512 * 1024, low=128 * 1024)
        self._connection.run_in_background(self._run(), "ssh forward")

    def connection_lost(self, exc: Exception | None) -> None:
        self._output.close()
        self._input.end()
        self._connection.release_channel()
        self.closed.set()

    def session_started(self) -> None:
        return

    def data_received(self, data: bytes, datatype: int | None) -> None:
        self._input.append(data)

    def eof_received(self) -> bool:
        self._input.end()
        return True

    def pause_writing(self) -> None:
        self._output.pause()

    def resume_writing(self) -> None:
        self._output.resume()

    async def _run(self) -> None:
        async with self._tunnel, asyncio.TaskGroup() as group:
            input_task = group.create_task(self._copy_input())
            closed_task = group.create_task(self.closed.wait())
            output_task = group.create_task(self._copy_output())
            await asyncio.wait({closed_task, output_task}, return_when=asyncio.FIRST_COMPLETED)
            if not self.closed.is_set():  # the computer has closed its side; the client may still send
                await asyncio.wait({closed_task, input_task}, return_when=asyncio.FIRST_COMPLETED)
            for task in (input_task, closed_task, output_task):
                task.cancel()
        if not self._output.closed:
            self._chan.close()

    async def _copy_input(self) -> None:
        with contextlib.suppress(FreeholdError):
            while data := await self._input.read():
                await self._tunnel.write(data)
            await self._tunnel.write_eof()

    async def _copy_output(self) -> None:
        with contextlib.suppress(FreeholdError):
            await self._output.copy(self._tunnel.read, self._chan.write)
        with contextlib.suppress(OSError):
            if not self._output.closed:
                self._chan.write_eof()


class TcpForward(_Forward, SSHTCPSession[bytes]):
    pass


class UnixForward(_Forward, SSHUNIXSession[bytes]):
    pass


async def forward_to_port(connection: "SshConnection", host: str, port: int) -> TcpForward:
    """`-L` and `-D`: only names of the computer itself are accepted; others are not resolved."""
    if host.lower().rstrip(".") not in COMPUTER_HOSTS:
        connection.release_channel()
        raise ChannelOpenError(
            OPEN_ADMINISTRATIVELY_PROHIBITED, "only ports of the computer are forwarded: use localhost"
        )
    return TcpForward(connection, await _open_tunnel(connection, port))


async def forward_to_socket(connection: "SshConnection", path: str) -> UnixForward:
    if not path.startswith("/") or len(path.encode(errors="replace")) > MAX_SOCKET_PATH_BYTES or "\0" in path:
        connection.release_channel()
        raise ChannelOpenError(OPEN_ADMINISTRATIVELY_PROHIBITED, "not an absolute path in the computer")
    return UnixForward(connection, await _open_tunnel(connection, path))


async def _open_tunnel(connection: "SshConnection", where: int | str) -> Tunnel:
    try:
        tunnel = await connection.server.computer.forward(where)
    except FreeholdError as error:
        connection.release_channel()
        raise ChannelOpenError(OPEN_CONNECT_FAILED, error.message[:200]) from None
    if connection.is_closed:  # no channel is left that would close it
        await tunnel.close()
        raise ChannelOpenError(OPEN_CONNECT_FAILED, "the connection is closed")
    return tunnel


class RemoteForward(SSHListener):
    """`-R`: listens on a port or socket of the computer and forwards connections to the client."""

    def __init__(self, connection: "SshConnection", open_channel: Callable[[Tunnel], Awaitable[_Forward]]) -> None:
        super().__init__()
        self._connection = connection
        self._open_channel = open_channel
        self._listening: ComputerListener | None = None
        self._closed = asyncio.Event()

    async def listen(self, where: int | str) -> bool:
        try:
            self._listening = await self._connection.server.computer.listen(where, self._serve)
        except FreeholdError:
            return False
        return True

    def get_port(self) -> int:
        return self._listening.port if self._listening is not None else 0

    def close(self) -> None:
        if not self._closed.is_set():
            self._closed.set()
            self._connection.release_listener()
            if self._listening is not None:
                self._connection.run_in_background(self._listening.close(), "ssh listener")

    async def wait_closed(self) -> None:
        await self._closed.wait()

    async def _serve(self, tunnel: Tunnel) -> None:
        if not self._connection.reserve_channel():
            return
        try:
            forward = await self._open_channel(tunnel)
        except (ChannelOpenError, OSError):
            self._connection.release_channel()
            return
        await forward.closed.wait()
