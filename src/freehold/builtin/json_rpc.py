"""JSON-RPC, one message a line: answers the client's requests, and sends updates and requests in order."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

MAX_LINE = 64 * 1024 * 1024

Json = dict[str, Any]
Handler = Callable[[Json], Awaitable[Json]]


class RequestError(Exception):
    """A request is answered with this error. The message is for the owner."""

    def __init__(self, message: str, code: int = -32603) -> None:
        super().__init__(message)
        self.message = message
        self.code = code


class AcpClient:
    """The connection to the client that started this program."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._next = 0
        self._waiting: dict[int, asyncio.Future[Json]] = {}

    async def update(self, session: str, update: Json) -> None:
        await self._send({"method": "session/update", "params": {"sessionId": session, "update": update}})

    async def request(self, method: str, params: Json) -> Json:
        """The client's answer. Raises `RequestError` when it answers with an error."""
        self._next += 1
        number = self._next
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            await self._send({"id": number, "method": method, "params": params})
            return await answer
        finally:
            self._waiting.pop(number, None)

    async def serve(self, requests: dict[str, Handler], notifications: dict[str, Callable[[Json], None]]) -> None:
        """Until the client closes the connection. Requests that still run are cancelled then."""
        async with asyncio.TaskGroup() as group:
            running: set[asyncio.Task[None]] = set()
            while line := await self._reader.readline():
                message = _read(line)
                method, number = message.get("method"), message.get("id")
                params = message.get("params")
                given: Json = params if isinstance(params, dict) else {}
                if method is None:
                    self._settle(message)
                elif number is None:
                    notifications.get(method, _ignore)(given)
                else:
                    task = group.create_task(self._answer(requests.get(method), method, number, given))
                    running.add(task)
                    task.add_done_callback(running.discard)
            for task in running:
                task.cancel()

    async def _answer(self, handler: Handler | None, method: str, number: object, params: Json) -> None:
        if handler is None:
            unknown = {"code": -32601, "message": f"There is no method {method!r}"}
            await self._send({"id": number, "error": unknown})
            return
        try:
            reply: Json = {"result": await handler(params)}
        except RequestError as refusal:
            reply = {"error": {"code": refusal.code, "message": refusal.message}}
        except (KeyError, TypeError, ValueError) as error:
            reply = {"error": {"code": -32602, "message": f"{method}: {type(error).__name__}: {error}"}}
        except Exception as error:  # a bug fails one request, not the program
            reply = {"error": {"code": -32603, "message": f"{type(error).__name__}: {error}"}}
        await self._send({"id": number, **reply})

    def _settle(self, message: Json) -> None:
        number = message.get("id")
        answer = self._waiting.get(number) if isinstance(number, int) else None
        if answer is None or answer.done():
            return
        error = message.get("error")
        if isinstance(error, dict):
            answer.set_exception(RequestError(str(error.get("message"))))
        else:
            result = message.get("result")
            answer.set_result(result if isinstance(result, dict) else {})

    async def _send(self, message: Json) -> None:
        self._writer.write(json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n")
        await self._writer.drain()


def _read(line: bytes) -> Json:
    try:
        message = json.loads(line)
    except ValueError:
        return {}
    return message if isinstance(message, dict) else {}


def _ignore(_params: Json) -> None:
    """Unknown notifications need no answer."""


async def connect_stdio() -> AcpClient:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=MAX_LINE)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, protocol = await loop.connect_write_pipe(lambda: asyncio.streams.FlowControlMixin(loop), sys.stdout)
    return AcpClient(reader, asyncio.StreamWriter(transport, protocol, None, loop))
