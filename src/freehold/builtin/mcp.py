"""Tools that the client offers over MCP, by streamable HTTP or by a program of its own; only as much of it as tools need."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

import httpx2
from pydantic_ai import RunContext, Tool

from freehold.builtin.step import Trouble, shorten
from freehold.builtin.wire import Json, Refusal
from freehold.builtin.work import Work

VERSION = "2025-06-18"
TO_ANSWER = 60.0
MAX_LINE = 16 * 1024 * 1024
MAX_RESULT = 40_000


class Server(Protocol):
    """Raises `Trouble` when it does not answer, or answers with an error."""

    async def ask(self, method: str, params: Json, *, patience: float | None = TO_ANSWER) -> Json: ...

    async def tell(self, method: str) -> None: ...


@dataclass
class _Http:
    client: httpx2.AsyncClient
    url: str
    session: str | None = None
    number: int = 0

    async def ask(self, method: str, params: Json, *, patience: float | None = TO_ANSWER) -> Json:
        self.number += 1
        sent = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        try:
            answer = await self.client.post(self.url, json=sent, headers=self._headers(), timeout=patience)
        except httpx2.HTTPError as error:
            raise Trouble(f"The tools cannot be reached: {str(error) or type(error).__name__}") from None
        self.session = answer.headers.get("mcp-session-id", self.session)
        return _result(_message(answer, self.number))

    async def tell(self, method: str) -> None:
        await self.client.post(self.url, json={"jsonrpc": "2.0", "method": method}, headers=self._headers())

    def _headers(self) -> dict[str, str]:
        headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": VERSION}
        return headers if self.session is None else {**headers, "mcp-session-id": self.session}


def _message(answer: httpx2.Response, number: int) -> Json:
    """The one message that answers ours, whole or in a stream of events."""
    if answer.status_code >= 400:
        raise Trouble(f"The tools answered {answer.status_code}: {answer.text[:300]}")
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
    raise Trouble("The tools did not answer")


@dataclass
class _Program:
    process: asyncio.subprocess.Process
    number: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def ask(self, method: str, params: Json, *, patience: float | None = TO_ANSWER) -> Json:
        async with self.turn:
            self.number += 1
            await self._send({"jsonrpc": "2.0", "id": self.number, "method": method, "params": params})
            try:
                async with asyncio.timeout(patience):
                    return _result(await self._heard(self.number))
            except TimeoutError:
                raise Trouble("The tools did not answer in time") from None

    async def tell(self, method: str) -> None:
        await self._send({"jsonrpc": "2.0", "method": method})

    async def _heard(self, number: int) -> Json:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict) and message.get("id") == number and "method" not in message:
                return message
        raise Trouble("The tools went away")

    async def _send(self, message: Json) -> None:
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            await self.process.stdin.drain()
        except ConnectionError:
            raise Trouble("The tools went away") from None


def _result(message: Json) -> Json:
    error = message.get("error")
    if isinstance(error, dict):
        raise Trouble(str(error.get("message") or "refused"))
    result = message.get("result")
    return result if isinstance(result, dict) else {}


@asynccontextmanager
async def offered_tools(work: Work) -> AsyncIterator[list[Tool[Work]]]:
    """The tools of every server that the session was given; one that does not answer is named and left out."""
    async with AsyncExitStack() as stack:
        tools: list[Tool[Work]] = []
        for described in work.session.servers:
            name = str(described.get("name"))
            try:
                server = await stack.enter_async_context(_connected(described))
                tools += [_tool(name, server, row) for row in (await server.ask("tools/list", {})).get("tools", [])]
            except (Trouble, OSError, httpx2.HTTPError) as error:
                words = f"The tools of {name} are left out: {error}\n\n"
                chunk = {"type": "text", "text": words}
                await work.tell({"sessionUpdate": "agent_message_chunk", "content": chunk})
        yield tools


@asynccontextmanager
async def _connected(described: Json) -> AsyncIterator[Server]:
    server: Server
    async with AsyncExitStack() as stack:
        if described.get("type") == "http":
            headers = {pair["name"]: pair["value"] for pair in described.get("headers", [])}
            client = await stack.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=TO_ANSWER))
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
            raise Refusal(f"This agent reaches no tools by {described.get('type')!r}", -32602)
        hello = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "freehold", "version": "1"}}
        await server.ask("initialize", hello)
        await server.tell("notifications/initialized")
        yield server


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()


def _tool(server_name: str, server: Server, row: dict[str, Any]) -> Tool[Work]:
    name = str(row["name"])

    async def call(ctx: RunContext[Work], **given: Any) -> str:
        async with ctx.deps.step(ctx.tool_call_id, f"{server_name}: {name}", "other", given) as step:
            # The owner may be asked first, and takes the time they take.
            answer = await server.ask("tools/call", {"name": name, "arguments": given}, patience=None)
            texts = [str(part.get("text", "")) for part in answer.get("content", []) if part.get("type") == "text"]
            text = shorten("\n".join(texts), MAX_RESULT)
            return await step.end(text, failed=answer.get("isError") is True)

    schema = row.get("inputSchema") or {"type": "object", "properties": {}}
    return Tool.from_schema(call, f"{server_name}_{name}", str(row.get("description") or ""), schema, takes_ctx=True)
