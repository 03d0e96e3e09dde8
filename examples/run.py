"""Run a command in a temporary computer."""

import asyncio

from freehold import Computer


async def main() -> None:
    async with Computer.start() as computer:
        result = await computer.run("uname -s; whoami", timeout=10)
        print(result.exit_code, result.text)


asyncio.run(main())
