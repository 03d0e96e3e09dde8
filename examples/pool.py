"""Short jobs in computers that are already started. Each is used once."""

import asyncio

from freehold import Computer


async def main() -> None:
    async with Computer.pool(2) as pool:
        for number in range(3):
            async with pool.checkout() as computer:
                print((await computer.run(f"echo $(({number} * {number}))")).text, end="")


asyncio.run(main())
