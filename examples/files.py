"""Write, find and read files inside."""

import asyncio

from freehold import Computer


async def main() -> None:
    async with Computer.start() as computer:
        await computer.files.write("notes/today.md", "# Today\nwater the plants\n", parents=True)
        for hit in (await computer.files.search("plants")).hits:
            print(hit.path, hit.line, hit.text)


asyncio.run(main())
