"""MCP servers as a feature."""

from freehold.features import CommandTopic, ControlCenterPage, Feature

FEATURE = Feature(
    name="mcp",
    title="MCP servers",
    section="freehold.mcp.section:McpSection",
    checks="freehold.mcp.checks",
    routes="freehold.mcp.routes:McpRoutes",
    service="freehold.mcp.own_code:OwnContexts",
    commands={"mcp": "freehold.mcp.cli:command"},
    topic=CommandTopic.AGENTS,
    pages=(ControlCenterPage("/mcp", "Tools"),),
)
