"""MCP servers: `home.mcp`."""

from collections.abc import Mapping
from typing import Any

from freehold.client._async.connection import AsyncConnection
from freehold.client.mcp_models import McpAnswer, McpServerInfo, McpSignInAddress
from freehold.client.topic_protocol import quote_segment

TRY_TIMEOUT = 120.0


class AsyncMcp:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list(self) -> tuple[McpServerInfo, ...]:
        """The servers of the manifest, with their tools as they were seen last."""
        return await self._connection.get("/v1/mcp", tuple[McpServerInfo, ...])

    async def try_server(self, name: str) -> McpServerInfo:
        """Connect to a server now, and read its tools."""
        return await self._connection.post(f"/v1/mcp/{quote_segment(name)}/try", McpServerInfo, {}, timeout=TRY_TIMEOUT)

    async def call(self, name: str, tool: str, arguments: Mapping[str, Any]) -> McpAnswer:
        """Call a tool on your own behalf."""
        body = {"tool": tool, "arguments": {**arguments}}
        path = f"/v1/mcp/{quote_segment(name)}/call"
        return await self._connection.post(path, McpAnswer, body, timeout=TRY_TIMEOUT)

    async def begin_sign_in(self, name: str) -> str:
        """The address at which you sign in to a remote server. Open it in a browser."""
        path = f"/v1/mcp/{quote_segment(name)}/sign-in"
        return (await self._connection.post(path, McpSignInAddress, {}, timeout=TRY_TIMEOUT)).address

    async def sign_out(self, name: str) -> McpServerInfo:
        """Forget the tokens of a remote server."""
        return await self._connection.delete(f"/v1/mcp/{quote_segment(name)}/sign-in", McpServerInfo)

    async def switch(self, name: str, *, on: bool) -> McpServerInfo:
        """Offer the tools of a server to agents, or not."""
        return await self._connection.patch(f"/v1/mcp/{quote_segment(name)}", McpServerInfo, {"on": on})

    async def decide(self, name: str, tool: str, digest: str | None) -> McpServerInfo:
        """Allow a tool as it was shown, or with None no longer."""
        path = f"/v1/mcp/{quote_segment(name)}/tools/{quote_segment(tool)}"
        return await self._connection.put(path, McpServerInfo, {"digest": digest})
