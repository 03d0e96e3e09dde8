"""Connections to MCP servers, over streamable HTTP or stdio. A server that asks this client for something gets an error."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol

from freehold.builtin.event_stream import EventReader
from freehold.builtin.http_client import HttpAnswer, HttpError, open_request
from freehold.builtin.json_rpc import Json, RequestError
from freehold.builtin.tool_call import ToolError

VERSION = "2025-06-18"
REPLY_TIMEOUT = 60.0
MAX_LINE = 16 * 1024 * 1024


class McpServer(Protocol):
    """One connection. Raises `ToolError` when the server does not answer, or answers with an error."""

    async def request(self, method: str, params: Json, *, timeout: float | None = REPLY_TIMEOUT) -> Json: ...

    async def notify(self, method: str) -> None: ...


@dataclass
class _Http:
    url: str
    own_headers: dict[str, str]
    session: str | None = None
    number: int = 0

    async def request(self, method: str, params: Json, *, timeout: float | None = REPLY_TIMEOUT) -> Json:
        self.number += 1
        number = self.number
        try:
            async with (
                asyncio.timeout(timeout),
                self._open({"id": number, "method": method, "params": params}) as answer,
            ):
                async for text in _read_messages(answer):
                    message = _decode(text)
                    if _is_answer(message, number):
                        return _result(message)
                    if (refusal := _refuse(message)) is not None:
                        await self._post(refusal)
        except TimeoutError:
            raise ToolError("The MCP server did not answer in time") from None
        raise ToolError("The MCP server did not answer")

    async def notify(self, method: str) -> None:
        await self._post({"method": method})

    async def _post(self, message: Json) -> None:
        async with self._open(message, timeout=REPLY_TIMEOUT):
            pass  # that it was taken is enough

    @asynccontextmanager
    async def _open(self, message: Json, timeout: float | None = None) -> AsyncIterator[HttpAnswer]:
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        try:
            async with open_request("POST", self.url, self._headers(), body, timeout=timeout) as answer:
                if answer.status >= 400:
                    text = (await answer.read(2000)).decode(errors="replace")
                    raise ToolError(f"The MCP server answered {answer.status}: {text[:300]}")
                self.session = answer.headers.get("mcp-session-id", self.session)
                yield answer
        except HttpError as error:
            raise ToolError(f"The MCP server cannot be reached: {error}") from None

    def _headers(self) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": VERSION,
            **self.own_headers,
        }
        return headers if self.session is None else {**headers, "Mcp-Session-Id": self.session}


async def _read_messages(answer: HttpAnswer) -> AsyncIterator[str]:
    """The JSON texts of an answer, from its body or, as they come, from a stream of events."""
    if not answer.headers.get("content-type", "").lower().startswith("text/event-stream"):
        yield (await answer.read(MAX_LINE)).decode(errors="replace")
        return
    reader = EventReader()
    async for piece in answer.pieces():
        try:
            texts = reader.feed(piece)
        except ValueError as error:
            raise ToolError(f"The MCP server sent {error}") from None
        for text in texts:
            yield text


@dataclass
class _Program:
    process: asyncio.subprocess.Process
    number: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def request(self, method: str, params: Json, *, timeout: float | None = REPLY_TIMEOUT) -> Json:
        async with self.turn:
            self.number += 1
            await self._send({"id": self.number, "method": method, "params": params})
            try:
                async with asyncio.timeout(timeout):
                    return _result(await self._read_answer(self.number))
            except TimeoutError:
                raise ToolError("The MCP server did not answer in time") from None

    async def notify(self, method: str) -> None:
        await self._send({"method": method})

    async def _read_answer(self, number: int) -> Json:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            message = _decode(line)
            if _is_answer(message, number):
                return message
            if (refusal := _refuse(message)) is not None:
                await self._send(refusal)
        raise ToolError("The MCP server has ended")

    async def _send(self, message: Json) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            await self.process.stdin.drain()
        except ConnectionError:
            raise ToolError("The MCP server has ended") from None


def _decode(text: str | bytes) -> Json:
    """Nothing for what is no message: some programs write words as well."""
    try:
        message = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) else {}


def _is_answer(message: Json, number: int) -> bool:
    return message.get("id") == number and "method" not in message


def _refuse(message: Json) -> Json | None:
    """The answer to a request of the server; None for any other message."""
    if "method" not in message or "id" not in message:
        return None
    if message["method"] == "ping":
        return {"id": message["id"], "result": {}}
    return {"id": message["id"], "error": {"code": -32601, "message": "This agent offers servers nothing"}}


def _result(message: Json) -> Json:
    error = message.get("error")
    if isinstance(error, dict):
        raise ToolError(str(error.get("message") or "unknown error"))
    result = message.get("result")
    return result if isinstance(result, dict) else {}


@asynccontextmanager
async def connect_server(described: Json) -> AsyncIterator[McpServer]:
    server: McpServer
    async with AsyncExitStack() as stack:
        if described.get("type") == "http":
            headers = {pair["name"]: pair["value"] for pair in described.get("headers", [])}
            server = _Http(described["url"], headers)
        elif "command" in described:
            process = await asyncio.create_subprocess_exec(
                described["command"],
                *described.get("args", []),
                env={**os.environ, **{pair["name"]: pair["value"] for pair in described.get("env", [])}},
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                limit=MAX_LINE,
            )
            stack.push_async_callback(_end, process)
            server = _Program(process)
        else:
            raise RequestError(f"This agent does not support MCP servers of the type {described.get('type')!r}", -32602)
        hello = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "freehold", "version": "1"}}
        await server.request("initialize", hello)
        await server.notify("notifications/initialized")
        yield server


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()
