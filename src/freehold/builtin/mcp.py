"""Tools of MCP servers that the client names, over streamable HTTP or stdio. Only the tools part of MCP is supported."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import httpx2
from pydantic_ai import RunContext, Tool

from freehold.builtin.json_rpc import Json, RequestError
from freehold.builtin.tool_call import ToolError, shorten
from freehold.builtin.tool_context import ToolContext

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
    client: httpx2.AsyncClient
    url: str
    session: str | None = None
    number: int = 0

    async def request(self, method: str, params: Json, *, timeout: float | None = REPLY_TIMEOUT) -> Json:
        self.number += 1
        sent = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        try:
            answer = await self.client.post(self.url, json=sent, headers=self._headers(), timeout=timeout)
        except httpx2.HTTPError as error:
            raise ToolError(f"The MCP server cannot be reached: {str(error) or type(error).__name__}") from None
        self.session = answer.headers.get("mcp-session-id", self.session)
        return _result(_message(answer, self.number))

    async def notify(self, method: str) -> None:
        await self.client.post(self.url, json={"jsonrpc": "2.0", "method": method}, headers=self._headers())

    def _headers(self) -> dict[str, str]:
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": VERSION}
        return headers if self.session is None else {**headers, "mcp-session-id": self.session}


def _message(answer: httpx2.Response, number: int) -> Json:
    """The answer to this request, from a JSON body or a stream of events."""
    if answer.status_code >= 400:
        raise ToolError(f"The MCP server answered {answer.status_code}: {answer.text[:300]}")
    lines = [answer.text]
    if answer.headers.get("content-type", "").startswith("text/event-stream"):
        lines = [line[5:] for line in answer.text.splitlines() if line.startswith("data:")]
    for line in lines:
        try:
            message = json.loads(line)
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
async def connect_tools(context: ToolContext) -> AsyncIterator[list[Tool[ToolContext]]]:
    """The tools of all MCP servers of the session. A server that does not answer is left out, with a message to the user."""
    async with AsyncExitStack() as stack:
        tools: list[Tool[ToolContext]] = []
        for described in context.session.servers:
            name = str(described.get("name"))
            try:
                server = await stack.enter_async_context(_connect(described))
                tools += [_tool(name, server, row) for row in (await server.request("tools/list", {})).get("tools", [])]
            except (ToolError, OSError, httpx2.HTTPError) as error:
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
            client = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=REPLY_TIMEOUT))
            server = _Http(client, described["url"])
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


def _tool(server_name: str, server: McpServer, row: dict[str, Any]) -> Tool[ToolContext]:
    name = str(row["name"])

    async def call(ctx: RunContext[ToolContext], **given: Any) -> str:
        async with ctx.deps.start_call(ctx.tool_call_id, f"{server_name}: {name}", "other", given) as tool_call:
            # No timeout: the owner may be asked first.
            answer = await server.request("tools/call", {"name": name, "arguments": given}, timeout=None)
            texts = [str(part.get("text", "")) for part in answer.get("content", []) if part.get("type") == "text"]
            text = shorten("\n".join(texts), MAX_RESULT)
            return await tool_call.end(text, failed=answer.get("isError") is True)

    schema = row.get("inputSchema") or {"type": "object", "properties": {}}
    return Tool.from_schema(call, f"{server_name}_{name}", str(row.get("description") or ""), schema, takes_ctx=True)
