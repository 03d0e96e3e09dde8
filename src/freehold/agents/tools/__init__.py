"""Host tools: tools that Freehold offers to every agent, over MCP and as a `freehold` command inside the computer."""
