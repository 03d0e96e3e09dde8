"""Leave a terminal and view it again."""

import asyncio

from freehold import Computer


async def main() -> None:
    async with Computer.start() as computer:
        terminal = await computer.terminal("echo first; read answer; echo you said $answer")
        await terminal.read_until(b"first")
        await terminal.detach()
        again = await computer.attach(terminal.id)
        await again.write(b"hello\n")
        print((await again.read_until(b"you said hello")).decode())


asyncio.run(main())
