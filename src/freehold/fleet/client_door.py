"""The socket of the fleet on this machine. Only the user of Freehold can open it.

A client says hello with one byte, with which it may hand over a listening socket. A connection that starts a computer
owns it.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from freehold.computer.contract.transport import listen_at
from freehold.errors import FreeholdError
from freehold.fleet.computer_lease import ComputerLease, LeaseOrder, find_folders
from freehold.fleet.head import FleetHead
from freehold.fleet.placer import RoomRequest, Strategy
from freehold.fleet.remote_spec import RemoteSpec
from freehold.fleet.wire import PIECE, Stream, describe_error, encode_message, read_message
from freehold.strict_json import WrongShape, decode

GREETING = b"freehold fleet\n"
HELLO_TIMEOUT = 10.0
MAX_GRACE = 86_400.0

Command = Callable[[dict[str, Any]], Awaitable[Any]]


@dataclass(frozen=True)
class StartRequest:
    """What a client sends to have a computer. With `id` and `node` it is one that it had from an earlier head."""

    do: str
    spec: RemoteSpec
    workspace: str
    home: str
    mounts: dict[str, str] = field(default_factory=dict)
    """Where they appear inside → path on this machine."""
    priority: int = 0
    strategy: Strategy | None = None
    who: str = "owner"
    labels: dict[str, str] = field(default_factory=dict)
    id: str | None = None
    node: str | None = None


class ClientDoor:
    """`commands` are requests with one answer, by name."""

    def __init__(self, head: FleetHead, strategy: Strategy, commands: dict[str, Command]) -> None:
        self._head = head
        self._strategy = strategy
        self._commands = commands

    @contextlib.asynccontextmanager
    async def serve(self, path: Path) -> AsyncIterator[None]:
        path.unlink(missing_ok=True)
        with listen_at(path) as listener:
            listener.setblocking(False)
            async with asyncio.TaskGroup() as group:
                accepting = group.create_task(self._accept(listener, group))
                try:
                    yield
                finally:
                    accepting.cancel()
        path.unlink(missing_ok=True)

    async def _accept(self, listener: socket.socket, group: asyncio.TaskGroup) -> None:
        clients: set[asyncio.Task[None]] = set()
        loop = asyncio.get_running_loop()
        try:
            while True:
                connection, _ = await loop.sock_accept(listener)
                task = group.create_task(self._serve(connection))
                clients.add(task)
                task.add_done_callback(clients.discard)
        finally:
            for task in clients:
                task.cancel()

    async def _serve(self, connection: socket.socket) -> None:
        handed: list[int] = []
        with connection:
            try:
                async with asyncio.timeout(HELLO_TIMEOUT):
                    await asyncio.get_running_loop().sock_sendall(connection, GREETING)
                    handed = await _receive_hello(connection)
                reader, writer = await asyncio.open_unix_connection(sock=connection, limit=PIECE)
            except (OSError, TimeoutError):
                _close_all(handed)
                return
            try:
                await self._talk((reader, writer), handed)
            except FreeholdError as error:
                writer.write(encode_message({"error": describe_error(error)}))
                with contextlib.suppress(OSError):
                    await writer.drain()
            except (OSError, asyncio.IncompleteReadError):
                pass  # it is gone
            finally:
                writer.close()
                _close_all(handed)

    async def _talk(self, stream: Stream, handed: list[int]) -> None:
        message = await read_message(stream[0])
        do = str(message.get("do"))
        if do in ("start", "adopt"):
            if len(handed) != 1:
                raise FreeholdError("fleet.bad-message", "A computer needs a listening socket")
            listener = socket.socket(fileno=handed.pop())
            try:
                await self._serve_computer(_decode_start(message), listener, stream)
            finally:
                listener.close()
            return
        command = self._commands.get(do)
        if command is None:
            known = ", ".join(sorted(self._commands))
            raise FreeholdError("fleet.bad-message", f"A fleet cannot do {do[:40]!r}", hint=f"It can: {known}")
        stream[1].write(encode_message({"result": await command(message)}))
        await stream[1].drain()

    async def _serve_computer(self, request: StartRequest, listener: socket.socket, stream: Stream) -> None:
        lease = await self._make_lease(request, listener)
        lease.client = stream[1]
        try:
            if request.do == "adopt":
                lease.id = request.id or ""
                await self._head.adopt(lease, request.node or "")
                stream[1].write(encode_message({"started": {"id": lease.id}}))
            else:
                started = await _unless_gone(self._head.start(lease.order, lease), stream[0])
                stream[1].write(encode_message({"started": started}))
            await self._serve_requests(lease, stream)
        finally:
            lease.client = None
            await asyncio.shield(self._head.abandon(lease))

    async def _make_lease(self, request: StartRequest, listener: socket.socket) -> ComputerLease:
        spec = request.spec
        order = LeaseOrder(
            spec,
            RoomRequest(spec.cpus, spec.memory, request.labels, request.strategy or self._strategy, gpus=spec.gpus),
            request.priority,
            request.who,
            find_folders(request.workspace, request.home),
            tuple(Path(source).resolve() for source in request.mounts.values()),
        )
        if request.do == "start":
            order = await self._head.describe_shown(order, list(request.mounts))
        return self._head.make_lease(order, listener)

    async def _serve_requests(self, lease: ComputerLease, stream: Stream) -> None:
        """Until the client goes, or says something that is no message."""
        async with asyncio.TaskGroup() as group:
            try:
                while True:
                    message = await read_message(stream[0])
                    group.create_task(self._answer(lease, message))
            except (OSError, asyncio.IncompleteReadError, FreeholdError):
                return

    async def _answer(self, lease: ComputerLease, message: dict[str, Any]) -> None:
        number = message.get("n")
        try:
            lease.tell({"n": number, "result": await self._obey(lease, message)})
        except FreeholdError as error:
            lease.tell({"n": number, "error": describe_error(error)})
        except (OSError, asyncio.IncompleteReadError) as error:
            lost = FreeholdError("fleet.lost", f"The connection to the node was lost: {error}")
            lease.tell({"n": number, "error": describe_error(lost)})

    async def _obey(self, lease: ComputerLease, message: dict[str, Any]) -> Any:
        do = message.get("do")
        if do == "stop":
            grace = message.get("grace", 0)
            if type(grace) not in (int, float) or not 0 <= grace <= MAX_GRACE:
                raise FreeholdError("fleet.bad-message", "The time that a computer has to end is not valid")
            return await self._head.stop(lease, grace)
        if do == "fetch":
            return await lease.take()
        if do in ("usage", "sleep", "wake"):
            return await lease.get_node().ask(str(do), lease.id)
        raise FreeholdError("fleet.bad-message", f"A computer cannot do {str(do)[:40]!r}")


def _decode_start(message: dict[str, Any]) -> StartRequest:
    try:
        return decode(StartRequest, message)
    except WrongShape as error:
        raise FreeholdError("fleet.bad-message", f"The request is not valid: {error}") from None


async def _unless_gone(work: Awaitable[dict[str, Any]], reader: asyncio.StreamReader) -> dict[str, Any]:
    """The result, unless the client goes first: it says nothing while it waits."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(reader.read(1))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ConnectionResetError("the client is gone")
        return await working
    finally:
        working.cancel()
        leaving.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _receive_hello(connection: socket.socket) -> list[int]:
    """One byte, and what was handed over with it."""
    loop = asyncio.get_running_loop()
    ready = loop.create_future()
    loop.add_reader(connection, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(connection)
    word, handed, _, _ = socket.recv_fds(connection, 1, 4)
    if not word:
        _close_all(list(handed))
        raise ConnectionResetError("the client is gone")
    return list(handed)


def _close_all(handed: list[int]) -> None:
    for descriptor in handed:
        socket.close(descriptor)
    handed.clear()
