"""Run Python code in an isolate: a process of its own with walls of its own, in milliseconds."""

import asyncio

from freehold import Computer


async def main() -> None:
    async with Computer.start() as computer:
        print(await computer.python.evaluate("[n * n for n in range(5)]"))
        context = await computer.python.contexts.create()
        await context.execute("price = 40")
        result = await context.execute("print(price + 2); price * 2")
        print(result.stdout, result.value)


asyncio.run(main())
