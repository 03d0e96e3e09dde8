"""The tools of MCP servers: read, allowed, called. clients/typescript/examples/tools.ts is the same."""

import asyncio
import sys

from freehold import Freehold


async def main(url: str = "http://localhost:3000", token: str | None = None, text: str = "hello") -> None:
    async with Freehold(url, token=token) as home:
        for listed in await home.mcp.list():
            server = await home.mcp.try_server(listed.name)
            for tool in server.tools:
                print(server.name, tool.name, tool.description)
                await home.mcp.decide(server.name, tool.name, tool.digest)
                print((await home.mcp.call(server.name, tool.name, {"text": text})).text)
                await home.mcp.decide(server.name, tool.name, None)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
