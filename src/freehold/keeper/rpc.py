"""The keeper's socket: mode 0600, the owner's uid only, bounded in clients, line length and patience."""

import asyncio
import contextlib
import logging
import os
import secrets
import socket
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from freehold.errors import FreeholdError
from freehold.keeper.methods import Methods
from freehold.keeper.wire import MAX_ANSWER, MAX_REQUEST, decode, encode

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RpcLimits:
    clients: int = 64
    requests_per_client: int = 16
    request_bytes: int = MAX_REQUEST
    answer_bytes: int = MAX_ANSWER
    # A reader that leaves its answers lying this long is dropped; nobody waits for it.
    write_patience: float = 10.0
    farewell: float = 0.3


class RpcServer:
    """Answers `methods` on a unix socket for as long as `serve` is entered."""

    def __init__(self, path: Path, methods: Methods, limits: RpcLimits | None = None) -> None:
        self._path = path
        self._methods = methods
        self._limits = limits or RpcLimits()
        self._clients = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @contextlib.asynccontextmanager
    async def serve(self) -> AsyncIterator[None]:
        listener = _listen(self._path)
        try:
            async with asyncio.TaskGroup() as group:
                accepting = group.create_task(self._accept(listener, group))
                try:
                    yield
                finally:
                    accepting.cancel()
                    group.create_task(self._cut())
        finally:
            listener.close()
            self._path.unlink(missing_ok=True)

    async def _accept(self, listener: socket.socket, group: asyncio.TaskGroup) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError as error:  # out of descriptors: those who hold them will let go
                log.warning("could not accept a connection: %s", error)
                await asyncio.sleep(0.1)
                continue
            if self._clients >= self._limits.clients or not _is_ours(connection):
                connection.close()
                continue
            self._clients += 1
            self._track(group.create_task(self._client(connection, group)))

    def _track(self, task: asyncio.Task[None]) -> asyncio.Task[None]:
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _cut(self) -> None:
        """Answers being written when the keeper stops get a moment; the rest is cut."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=self._limits.farewell)
        for task in self._tasks:
            task.cancel()

    async def _client(self, connection: socket.socket, group: asyncio.TaskGroup) -> None:
        writer: asyncio.StreamWriter | None = None
        try:
            reader, writer = await asyncio.open_connection(sock=connection, limit=self._limits.request_bytes)
            writer.transport.set_write_buffer_limits(high=256 * 1024)
            await self._converse(_Answers(writer, self._limits), reader, group)
        except (OSError, asyncio.IncompleteReadError):
            return
        except Exception:
            log.exception("a conversation on the keeper's socket failed")
        finally:
            self._clients -= 1
            if writer is not None:
                writer.transport.abort() if writer.transport.is_closing() else writer.close()
            else:
                connection.close()

    async def _converse(self, answers: "_Answers", reader: asyncio.StreamReader, group: asyncio.TaskGroup) -> None:
        slots = asyncio.Semaphore(self._limits.requests_per_client)
        streams: set[asyncio.Task[None]] = set()
        try:
            while not answers.gone:
                try:
                    line = await reader.readuntil(b"\n")
                except asyncio.LimitOverrunError:
                    await answers.error(None, FreeholdError("keeper.too-long", "A request may have at most 1 MiB"))
                    return
                await slots.acquire()
                task = await self._begin(line, answers, group, streams)
                if task is None:
                    slots.release()
                    continue
                task.add_done_callback(lambda _: slots.release())
        finally:
            for stream in streams:
                stream.cancel()

    async def _begin(
        self, line: bytes, answers: "_Answers", group: asyncio.TaskGroup, streams: set[asyncio.Task[None]]
    ) -> asyncio.Task[None] | None:
        identity: Any = None
        try:
            message = decode(line)
            identity = message.get("id")
            name = message.get("method")
            if not isinstance(name, str) or not isinstance(identity, int | str):
                await answers.error(None, FreeholdError("keeper.bad-message", "A request needs an id and a method"))
                return None
            params = message.get("params", {})
            if (call := self._methods.calls.get(name)) is not None:
                return self._track(group.create_task(answers.call(identity, name, call(params))))
            if (stream := self._methods.streams.get(name)) is not None:
                task = self._track(group.create_task(answers.stream(identity, name, stream(params))))
                streams.add(task)
                task.add_done_callback(streams.discard)
                return task
            await answers.error(identity, self._methods.unknown(name))
        except FreeholdError as error:
            await answers.error(identity, error)
        return None


class _Answers:
    """Writes to one client; once it is `gone`, everything written is let fall."""

    def __init__(self, writer: asyncio.StreamWriter, limits: RpcLimits) -> None:
        self._writer = writer
        self._limits = limits
        self.gone = False

    async def call(self, identity: int | str, name: str, answer: Any) -> None:
        try:
            await self.send({"id": identity, "result": await answer})
        except FreeholdError as error:
            await self.error(identity, error)
        except Exception:
            await self.bug(identity, name)

    async def stream(self, identity: int | str, name: str, events: AsyncIterator[Any]) -> None:
        try:
            async for event in events:
                await self.send({"id": identity, "event": event})
                if self.gone:
                    return
            await self.send({"id": identity, "end": True})
        except FreeholdError as error:
            await self.error(identity, error)
        except Exception:
            await self.bug(identity, name)
        finally:
            close = getattr(events, "aclose", None)
            if close is not None:
                await close()

    async def error(self, identity: int | str | None, error: FreeholdError) -> None:
        await self.send({"id": identity, "error": error.body()})

    async def bug(self, identity: int | str, name: str) -> None:
        error_id = secrets.token_hex(6)
        log.exception("%s failed [%s]", name, error_id)
        body = {"code": "keeper.bug", "message": f"{name} failed inside the keeper", "hint": "", "error_id": error_id}
        await self.send({"id": identity, "error": body})

    async def send(self, message: dict[str, Any]) -> None:
        if self.gone:
            return
        line = encode(message)
        if len(line) > self._limits.answer_bytes:
            too_long = FreeholdError(
                "keeper.answer-too-long", f"The answer has {len(line)} bytes", hint="Ask for less of it"
            )
            line = encode({"id": message["id"], "error": too_long.body()})
        try:
            self._writer.write(line)
            async with asyncio.timeout(self._limits.write_patience):
                await self._writer.drain()
        except (OSError, TimeoutError):
            self.gone = True
            self._writer.transport.abort()


def _listen(path: Path) -> socket.socket:
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
    try:
        # The folder is 0700 already; the mask closes the moment between bind and chmod all the same.
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


def _is_ours(connection: socket.socket) -> bool:
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _pid, uid, _gid = struct.unpack("3i", credentials)
    if uid in (os.geteuid(), 0):
        return True
    log.warning("refused uid %s on the keeper's socket", uid)
    return False
