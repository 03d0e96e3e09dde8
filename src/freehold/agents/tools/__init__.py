"""Host tools: what every agent may ask of the house, over MCP and as a `freehold` command inside the computer."""
