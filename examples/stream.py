"""Read the output of a command line by line while it runs."""

import asyncio

from freehold import Computer


async def main() -> None:
    async with Computer.start() as computer, await computer.spawn("for n in 1 2 3; do echo line $n; done") as process:
        async for line in process.stdout.lines():
            print(line.decode(), end="")


asyncio.run(main())
