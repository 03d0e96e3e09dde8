"""MCP servers of the owner, offered to every agent. See docs/guides/mcp.md."""
