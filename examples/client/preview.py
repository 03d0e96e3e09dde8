"""The servers that run inside, each at an address for your browser. clients/typescript/examples/preview.ts is the same."""

import asyncio
import sys

from freehold import Freehold


async def main(url: str = "http://localhost:3000", token: str | None = None) -> None:
    async with Freehold(url, token=token) as home:
        for port in await home.preview.ports():
            opened = await home.preview.open(port.port, path="/")
            print(port.port, port.process, "is yours to open" if opened.address.startswith(opened.origin) else "")
        for site in await home.preview.sites():
            print(site.name, "runs" if site.running else "starts when it is opened")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
