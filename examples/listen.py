"""Serve programs inside from a handler on the host."""

import asyncio

from freehold import Computer
from freehold.computer import Tunnel


async def greet(tunnel: Tunnel) -> None:
    await tunnel.write(b"hello from the host\n")


async def main() -> None:
    async with Computer.start() as computer, await computer.listen(8080, greet):
        client = "import socket; print(socket.create_connection(('127.0.0.1', 8080)).makefile().read())"
        print((await computer.run(["python3", "-c", client])).text, end="")


asyncio.run(main())
