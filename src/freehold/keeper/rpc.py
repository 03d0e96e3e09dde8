"""The server of the keeper's socket: mode 0600, this user only, with limits on clients, line length and time."""

import asyncio
import contextlib
import logging
import os
import secrets
import socket
import struct
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from freehold.errors import FreeholdError
from freehold.keeper.methods import RpcMethods
from freehold.keeper.wire import MAX_REPLY, MAX_REQUEST, decode_message, encode_message
from freehold.observe.tracing import span

log = logging.getLogger(__name__)

ACCEPT_PAUSE = 0.1
"""Seconds until the next try, when no connection could be accepted."""


@dataclass(frozen=True)
class RpcLimits:
    clients: int = 64
    requests_per_client: int = 16
    request_bytes: int = MAX_REQUEST
    reply_bytes: int = MAX_REPLY
    # A client that does not read its replies for this long is disconnected.
    write_timeout: float = 10.0
    # Replies that are being written when the keeper stops have this long to finish.
    stop_grace: float = 0.3


class RpcServer:
    """Answers `methods` on a unix socket for as long as `serve` is entered."""

    def __init__(self, path: Path, methods: RpcMethods, limits: RpcLimits | None = None) -> None:
        self._path = path
        self._methods = methods
        self._limits = limits or RpcLimits()
        self._clients = 0
        self._accepting = False
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        listener = _listen(self._path)
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.TaskGroup() as group:
                # Not `sock_accept`: when that is cancelled, a connection that was just accepted is never closed.
                self._accepting = True
                loop.add_reader(listener, self._accept, listener, group)
                try:
                    yield
                finally:
                    self._accepting = False
                    loop.remove_reader(listener)
                    group.create_task(self._cut_off())
        finally:
            listener.close()
            self._path.unlink(missing_ok=True)

    def _accept(self, listener: socket.socket, group: asyncio.TaskGroup) -> None:
        try:
            connection, _ = listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:  # out of file descriptors: wait until some are closed
            log.warning("could not accept a connection: %s", error)
            loop = asyncio.get_running_loop()
            loop.remove_reader(listener)
            loop.call_later(ACCEPT_PAUSE, self._accept_again, listener, group)
            return
        connection.setblocking(False)
        if self._clients >= self._limits.clients or not _is_same_user(connection):
            connection.close()
            return
        self._clients += 1
        self._track(group.create_task(self._serve_client(connection, group)))

    def _accept_again(self, listener: socket.socket, group: asyncio.TaskGroup) -> None:
        if self._accepting:
            asyncio.get_running_loop().add_reader(listener, self._accept, listener, group)

    def _track(self, task: asyncio.Task[None]) -> asyncio.Task[None]:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _cut_off(self) -> None:
        """Wait a moment for replies that are being written, then cancel everything."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._limits.stop_grace)
        for task in self._tasks:
            task.cancel()

    async def _serve_client(self, connection: socket.socket, group: asyncio.TaskGroup) -> None:
        writer: asyncio.StreamWriter | None = None
        try:
            reader, writer = await asyncio.open_connection(sock=connection, limit=self._limits.request_bytes)
            writer.transport.set_write_buffer_limits(high=256 * 1024)
            await self._read_requests(_ReplyWriter(writer, self._limits), reader, group)
        except (OSError, asyncio.IncompleteReadError):
            return
        except Exception:
            log.exception("a connection to the keeper's socket failed")
        finally:
            self._clients -= 1
            if writer is not None:
                writer.transport.abort() if writer.transport.is_closing() else writer.close()
            else:
                connection.close()

    async def _read_requests(
        self, replies: "_ReplyWriter", reader: asyncio.StreamReader, group: asyncio.TaskGroup
    ) -> None:
        slots = asyncio.Semaphore(self._limits.requests_per_client)
        streams: set[asyncio.Task[None]] = set()
        try:
            while not replies.closed:
                try:
                    line = await reader.readuntil(b"\n")
                except asyncio.LimitOverrunError:
                    await replies.error(None, FreeholdError("keeper.too-long", "A request may have at most 1 MiB"))
                    return
                await slots.acquire()
                task = await self._begin(line, replies, group, streams)
                if task is None:
                    slots.release()
                    continue
                task.add_done_callback(lambda _: slots.release())
        finally:
            for stream in streams:
                stream.cancel()

    async def _begin(
        self, line: bytes, replies: "_ReplyWriter", group: asyncio.TaskGroup, streams: set[asyncio.Task[None]]
    ) -> asyncio.Task[None] | None:
        identity: Any = None
        try:
            message = decode_message(line)
            identity = message.get("id")
            name = message.get("method")
            if not isinstance(name, str) or not isinstance(identity, int | str):
                error = FreeholdError("keeper.bad-message", "A request needs an id and a method")
                await replies.error(None, error)
                return None
            params = message.get("params", {})
            if (call := self._methods.calls.get(name)) is not None:
                work = _traced(name, message.get("trace"), call(params))
                return self._track(group.create_task(replies.call(identity, name, work)))
            if (stream := self._methods.streams.get(name)) is not None:
                task = self._track(group.create_task(replies.stream(identity, name, stream(params))))
                streams.add(task)
                task.add_done_callback(streams.discard)
                return task
            await replies.error(identity, self._methods.unknown_method_error(name))
        except FreeholdError as error:
            await replies.error(identity, error)
        return None


async def _traced(name: str, parent: object, work: Awaitable[Any]) -> Any:
    """The work in a span whose parent is the span of the caller."""
    with span(f"keeper {name}", parent=parent if isinstance(parent, str) else None, side="server"):
        return await work


class _ReplyWriter:
    """Writes to one client. Once the connection is `closed`, everything written is dropped."""

    def __init__(self, writer: asyncio.StreamWriter, limits: RpcLimits) -> None:
        self._writer = writer
        self._limits = limits
        self.closed = False

    async def call(self, identity: int | str, name: str, work: Awaitable[Any]) -> None:
        try:
            await self.send({"id": identity, "result": await work})
        except FreeholdError as error:
            await self.error(identity, error)
        except Exception:
            await self.bug(identity, name)

    async def stream(self, identity: int | str, name: str, items: AsyncGenerator[Any, None]) -> None:
        try:
            async for item in items:
                await self.send({"id": identity, "event": item})
                if self.closed:
                    return
            await self.send({"id": identity, "end": True})
        except FreeholdError as error:
            await self.error(identity, error)
        except Exception:
            await self.bug(identity, name)
        finally:
            await items.aclose()

    async def error(self, identity: int | str | None, error: FreeholdError) -> None:
        await self.send({"id": identity, "error": error.body()})

    async def bug(self, identity: int | str, name: str) -> None:
        error_id = secrets.token_hex(6)
        log.exception("%s failed [%s]", name, error_id)
        body = {"code": "keeper.bug", "message": f"{name} failed inside the keeper", "hint": "", "error_id": error_id}
        await self.send({"id": identity, "error": body})

    async def send(self, message: dict[str, Any]) -> None:
        if self.closed:
            return
        line = encode_message(message)
        if len(line) > self._limits.reply_bytes:
            too_long = FreeholdError(
                "keeper.answer-too-long",
                f"The reply has {len(line)} bytes, which is too much",
                hint="Ask for less at once",
            )
            line = encode_message({"id": message["id"], "error": too_long.body()})
        try:
            self._writer.write(line)
            async with asyncio.timeout(self._limits.write_timeout):
                await self._writer.drain()
        except (OSError, TimeoutError):
            self.closed = True
            self._writer.transport.abort()


def _listen(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        # The folder is 0700 already. The umask also covers the moment between bind and chmod.
        before = os.umask(0o177)
        try:
            listener.bind(str(path))
        finally:
            os.umask(before)
        listener.listen(64)
    except OSError:
        listener.close()
        raise
    return listener


def _is_same_user(connection: socket.socket) -> bool:
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _pid, uid, _gid = struct.unpack("3i", credentials)
    if uid in (os.geteuid(), 0):
        return True
    log.warning("refused a connection of uid %s to the keeper's socket", uid)
    return False
