# made from _async/mcp.py by python -m tools.generate
"""MCP servers: `home.mcp`."""

from collections.abc import Mapping
from typing import Any

from freehold.client._sync.connection import SyncConnection
from freehold.client.mcp_models import McpAnswer, McpServerInfo, McpSignInAddress
from freehold.client.topic_protocol import quote_segment

TRY_TIMEOUT = 120.0


class SyncMcp:
    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def list(self) -> tuple[McpServerInfo, ...]:
        """The servers of the manifest, with their tools as they were seen last."""
        return self._connection.get("/v1/mcp", tuple[McpServerInfo, ...])

    def try_server(self, name: str) -> McpServerInfo:
        """Connect to a server now, and read its tools."""
        return self._connection.post(f"/v1/mcp/{quote_segment(name)}/try", McpServerInfo, {}, timeout=TRY_TIMEOUT)

    def call(self, name: str, tool: str, arguments: Mapping[str, Any]) -> McpAnswer:
        """Call a tool on your own behalf."""
        body = {"tool": tool, "arguments": {**arguments}}
        path = f"/v1/mcp/{quote_segment(name)}/call"
        return self._connection.post(path, McpAnswer, body, timeout=TRY_TIMEOUT)

    def begin_sign_in(self, name: str) -> str:
        """The address at which you sign in to a remote server. Open it in a browser."""
        path = f"/v1/mcp/{quote_segment(name)}/sign-in"
        return (self._connection.post(path, McpSignInAddress, {}, timeout=TRY_TIMEOUT)).address

    def sign_out(self, name: str) -> McpServerInfo:
        """Forget the tokens of a remote server."""
        return self._connection.delete(f"/v1/mcp/{quote_segment(name)}/sign-in", McpServerInfo)

    def switch(self, name: str, *, on: bool) -> McpServerInfo:
        """Offer the tools of a server to agents, or not."""
        return self._connection.patch(f"/v1/mcp/{quote_segment(name)}", McpServerInfo, {"on": on})

    def decide(self, name: str, tool: str, digest: str | None) -> McpServerInfo:
        """Allow a tool as it was shown, or with None no longer."""
        path = f"/v1/mcp/{quote_segment(name)}/tools/{quote_segment(tool)}"
        return self._connection.put(path, McpServerInfo, {"digest": digest})
