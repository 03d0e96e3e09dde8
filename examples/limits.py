"""Set limits, and see which one a command reached."""

import asyncio

from freehold import Computer
from freehold.computer import Limits


async def main() -> None:
    async with Computer.start(limits=Limits(wall_time=1, output=1000)) as computer:
        result = await computer.run("yes")
        print(result.limit, len(result.stdout), result.truncated > 0)


asyncio.run(main())
