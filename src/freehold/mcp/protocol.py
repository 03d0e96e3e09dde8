"""The client's side of MCP: bounded, and without anything that a server could ask of the owner.

Servers are not trusted. Freehold declares no capability: a server that asks for the owner's folders, for a model or for
an input gets an error. Its tools are used, and its resources and prompts by tools for them.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

from freehold import __version__
from freehold.agents.visible_text import make_visible
from freehold.errors import FreeholdError
from freehold.mcp.content_tools import call_content_tool, list_content_tools
from freehold.mcp.described_tool import DescribedTool

Json = dict[str, Any]
VERSION = "2025-06-18"
CONNECT_TIMEOUT = 30.0
CALL_TIMEOUT = 300.0
MAX_MESSAGE = 4 * 1024 * 1024
MAX_MESSAGES = 2_000
"""Messages that a server may send while one request waits for its answer."""
MAX_TOOLS = 200
MAX_PAGES = 20
MAX_NAME = 64
MAX_DESCRIPTION = 4_000
MAX_SCHEMA = 32 * 1024
MAX_RESULT = 100_000


class McpTransport(Protocol):
    """Raises `mcp.ended` when the server has ended."""

    async def send(self, message: Json) -> None:
        """Sends a message that has no answer. It may be called while `ask` is open."""
        ...

    def ask(self, message: Json) -> AbstractAsyncContextManager[AsyncIterator[Json]]:
        """Sends a request. Yields the messages of the server as they come; the answer is one of them."""
        ...


class McpClient:
    """One connection that is initialized. One request at a time."""

    def __init__(self, name: str, transport: McpTransport) -> None:
        self._name = name
        self._transport = transport
        self._number = 0
        self._content: dict[str, DescribedTool] = {}
        """Those that stand for resources and prompts, unless the server has a tool of that name."""
        self._turn = asyncio.Lock()

    async def open(self) -> None:
        hello = {
            "protocolVersion": VERSION,
            "capabilities": {},
            "clientInfo": {"name": "freehold", "version": __version__},
        }
        answer = await self._request("initialize", hello, CONNECT_TIMEOUT)
        if not isinstance(answer.get("protocolVersion"), str):
            raise self._bad_answer("does not speak MCP")
        self._content = list_content_tools(answer.get("capabilities"))
        await self._transport.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def list_tools(self) -> dict[str, DescribedTool]:
        """By name. Those with a name, text or schema that is too long or malformed are left out."""
        found: dict[str, DescribedTool] = {}
        cursor: object = None
        for _ in range(MAX_PAGES):
            answer = await self._request("tools/list", {} if cursor is None else {"cursor": cursor}, CONNECT_TIMEOUT)
            rows = answer.get("tools")
            for row in rows if isinstance(rows, list) else ():
                tool = read_tool(row)
                if tool is not None and len(found) < MAX_TOOLS:
                    found.setdefault(tool.name, tool)
            cursor = answer.get("nextCursor")
            if not isinstance(cursor, str) or not cursor:
                break
        self._content = {name: tool for name, tool in self._content.items() if name not in found}
        return found | self._content

    async def call(self, tool: str, arguments: Json) -> tuple[str, bool]:
        """The text of the answer, and whether the tool says that it failed."""
        if tool in self._content:
            text = await call_content_tool(self._request_content, tool, arguments)
            return _cut(text), False
        answer = await self._request("tools/call", {"name": tool, "arguments": arguments}, CALL_TIMEOUT)
        content = answer.get("content")
        texts = [_read_part(part) for part in content] if isinstance(content, list) else []
        return _cut("\n".join(texts)), answer.get("isError") is True

    async def _request_content(self, method: str, params: Json) -> Json:
        return await self._request(method, params, CALL_TIMEOUT)

    async def _request(self, method: str, params: Json, timeout: float) -> Json:
        async with self._turn:
            self._number += 1
            try:
                async with asyncio.timeout(timeout):
                    message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
                    async with self._transport.ask(message) as messages:
                        return await self._wait_for(messages, self._number)
            except TimeoutError:
                words = f"The MCP server {self._name} did not answer {method} within {timeout:g} s"
                raise FreeholdError("mcp.silent", words) from None

    async def _wait_for(self, messages: AsyncIterator[Json], number: int) -> Json:
        count = 0
        async for message in messages:
            count += 1
            if count > MAX_MESSAGES:
                raise self._bad_answer(f"sent more than {MAX_MESSAGES} messages instead of an answer")
            if "method" in message:
                await self._answer(message)
            elif message.get("id") == number:
                error = message.get("error")
                if isinstance(error, dict):
                    raise self._bad_answer(f"refused: {str(error.get('message'))[:1000]}")
                result = message.get("result")
                return result if isinstance(result, dict) else {}
        raise self._bad_answer("did not answer")

    async def _answer(self, message: Json) -> None:
        if "id" not in message:
            return
        if message.get("method") == "ping":
            reply: Json = {"result": {}}
        else:
            reply = {"error": {"code": -32601, "message": "Freehold offers servers nothing"}}
        await self._transport.send({"jsonrpc": "2.0", "id": message["id"], **reply})

    def _bad_answer(self, words: str) -> FreeholdError:
        return FreeholdError("mcp.bad-answer", make_visible(f"The MCP server {self._name} {words}", lines=False))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_RESULT else f"{text[:MAX_RESULT]}\n… (cut off: {len(text)} characters)"


def read_tool(row: object) -> DescribedTool | None:
    if not isinstance(row, dict):
        return None
    name, description, schema = row.get("name"), row.get("description") or "", row.get("inputSchema")
    if not isinstance(name, str) or not 0 < len(name) <= MAX_NAME or not name.isprintable() or not name.isascii():
        return None
    if not isinstance(description, str) or len(description) > MAX_DESCRIPTION:
        return None
    if not isinstance(schema, dict) or len(json.dumps(schema)) > MAX_SCHEMA:
        return None
    return DescribedTool(name, make_visible(description), schema)


def decode_message(name: str, data: bytes | str) -> Json:
    """Raises `mcp.bad-answer`."""
    try:
        message = json.loads(data)
    except (ValueError, RecursionError):
        message = None
    if not isinstance(message, dict):
        raise FreeholdError("mcp.bad-answer", f"The MCP server {name} sent a message that is not JSON")
    return message


def _read_part(part: object) -> str:
    if not isinstance(part, dict):
        return ""
    if part.get("type") == "text":
        return make_visible(str(part.get("text") or ""))
    resource = part.get("resource")
    if isinstance(resource, dict) and isinstance(resource.get("text"), str):
        return make_visible(resource["text"])
    return f"[{str(part.get('type'))[:40]}]"
