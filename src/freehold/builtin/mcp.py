"""Tools of MCP servers that the client names. Only the tools part of MCP is supported."""

import hashlib
import re
from collections.abc import AsyncIterator, Container
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from freehold.builtin.json_rpc import Json
from freehold.builtin.mcp_connection import McpServer, connect_server
from freehold.builtin.providers.contract import ToolDescription
from freehold.builtin.tool import BuiltinTool
from freehold.builtin.tool_call import ToolError, shorten
from freehold.builtin.tool_context import ToolContext
from freehold.builtin.tool_pictures import ToolOutput, read_pictures

MAX_RESULT = 40_000
MAX_NAME = 64
_DIGITS = 10


@asynccontextmanager
async def connect_tools(context: ToolContext) -> AsyncIterator[list[BuiltinTool]]:
    """The tools of all MCP servers of the session. A server that does not answer is left out, with a message to the user."""
    async with AsyncExitStack() as stack:
        tools: dict[str, BuiltinTool] = {}
        for described in context.session.servers:
            name = str(described.get("name"))
            try:
                server = await stack.enter_async_context(connect_server(described))
                for row in (await server.request("tools/list", {})).get("tools", []):
                    tool = _tool(name, server, row, tools)
                    tools[tool.name] = tool
            except (ToolError, OSError) as error:
                text = f"The tools of {name} are not available: {error}\n\n"
                chunk = {"type": "text", "text": text}
                await context.send_update({"sessionUpdate": "agent_message_chunk", "content": chunk})
        yield list(tools.values())


def fit_name(server: str, tool: str, taken: Container[str]) -> str:
    """A name that every provider takes. One that is changed ends with a hash of the real ones, so that it is unique."""
    plain = f"{server}_{tool}"
    fit = re.sub(r"[^A-Za-z0-9_-]", "_", plain)
    if fit == plain and len(fit) <= MAX_NAME and fit not in taken:
        return fit
    digest = hashlib.sha256(f"{server}\n{tool}".encode()).hexdigest()[:_DIGITS]
    return f"{fit[: MAX_NAME - _DIGITS - 1]}_{digest}"


def _tool(server_name: str, server: McpServer, row: dict[str, Any], taken: Container[str]) -> BuiltinTool:
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
    description = ToolDescription(fit_name(server_name, name, taken), str(row.get("description") or ""), schema)
    return BuiltinTool(description, call)
