"""Tools of MCP servers that the client names, over streamable HTTP or stdio. Only the tools part of MCP is supported."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from freehold.builtin.http_client import HttpError, open_request
from freehold.builtin.json_rpc import Json, RequestError
from freehold.builtin.providers.contract import ToolDescription
from freehold.builtin.tool import BuiltinTool
from freehold.builtin.tool_call import ToolError, shorten
from freehold.builtin.tool_context import ToolContext
from freehold.builtin.tool_pictures import ToolOutput, read_pictures

VERSION = "2025-06-18"
REPLY_TIMEOUT = 60.0
MAX_LINE = 16 * 1024 * 1024
MAX_RESULT = 40_000


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
        sent = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        return _result(_find_answer(await self._post(sent, timeout), self.number))

    async def notify(self, method: str) -> None:
        await self._post({"jsonrpc": "2.0", "method": method}, REPLY_TIMEOUT)

    async def _post(self, message: Json, timeout: float | None) -> list[str]:
        """Sends a message. Returns the JSON texts of the answer, from its body or from a stream of events."""
        try:
            async with open_request(
                "POST", self.url, self._headers(), json.dumps(message).encode(), timeout=timeout
            ) as answer:
                text = (await answer.read(MAX_LINE)).decode(errors="replace")
        except HttpError as error:
            raise ToolError(f"The MCP server cannot be reached: {error}") from None
        if answer.status >= 400:
            raise ToolError(f"The MCP server answered {answer.status}: {text[:300]}")
        self.session = answer.headers.get("mcp-session-id", self.session)
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            return [line[5:] for line in text.splitlines() if line.startswith("data:")]
        return [text]

    def _headers(self) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": VERSION,
            **self.own_headers,
        }
        return headers if self.session is None else {**headers, "Mcp-Session-Id": self.session}


def _find_answer(texts: list[str], number: int) -> Json:
    for text in texts:
        try:
            message = json.loads(text)
        except ValueError:
            continue
        if isinstance(message, dict) and message.get("id") == number:
            return message
    raise ToolError("The MCP server did not answer")


@dataclass
class _Program:
    process: asyncio.subprocess.Process
    number: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def request(self, method: str, params: Json, *, timeout: float | None = REPLY_TIMEOUT) -> Json:
        async with self.turn:
            self.number += 1
            await self._send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
            try:
                async with asyncio.timeout(timeout):
                    return _result(await self._read_answer(self.number))
            except TimeoutError:
                raise ToolError("The MCP server did not answer in time") from None

    async def notify(self, method: str) -> None:
        await self._send({"jsonrpc": "2.0", "method": method})

    async def _read_answer(self, number: int) -> Json:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict) and message.get("id") == number and "method" not in message:
                return message
        raise ToolError("The MCP server has ended")

    async def _send(self, message: Json) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            await self.process.stdin.drain()
        except ConnectionError:
            raise ToolError("The MCP server has ended") from None


def _result(message: Json) -> Json:
    error = message.get("error")
    if isinstance(error, dict):
        raise ToolError(str(error.get("message") or "unknown error"))
    result = message.get("result")
    return result if isinstance(result, dict) else {}


@asynccontextmanager
async def connect_tools(context: ToolContext) -> AsyncIterator[list[BuiltinTool]]:
    """The tools of all MCP servers of the session. A server that does not answer is left out, with a message to the user."""
    async with AsyncExitStack() as stack:
        tools: list[BuiltinTool] = []
        for described in context.session.servers:
            name = str(described.get("name"))
            try:
                server = await stack.enter_async_context(_connect(described))
                tools += [_tool(name, server, row) for row in (await server.request("tools/list", {})).get("tools", [])]
            except (ToolError, OSError) as error:
                text = f"The tools of {name} are not available: {error}\n\n"
                chunk = {"type": "text", "text": text}
                await context.send_update({"sessionUpdate": "agent_message_chunk", "content": chunk})
        yield tools


@asynccontextmanager
async def _connect(described: Json) -> AsyncIterator[McpServer]:
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


def _tool(server_name: str, server: McpServer, row: dict[str, Any]) -> BuiltinTool:
    name = str(row["name"])

    async def call(context: ToolContext, given: Json) -> ToolOutput:
        async with context.start_call(f"{server_name}: {name}", "other", given) as tool_call:
            # No timeout: the owner may be asked first.
            answer = await server.request("tools/call", {"name": name, "arguments": given}, timeout=None)
            content = answer.get("content", [])
            texts = [str(part.get("text", "")) for part in content if part.get("type") == "text"]
            text = shorten("\n".join(texts), MAX_RESULT)
            await tool_call.end(text, failed=answer.get("isError") is True)
            return ToolOutput(text, read_pictures(content))

    schema = row.get("inputSchema") or {"type": "object", "properties": {}}
    return BuiltinTool(ToolDescription(f"{server_name}_{name}", str(row.get("description") or ""), schema), call)
