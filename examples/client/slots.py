"""A work item, a memory, a document and an event. clients/typescript/examples/slots.ts is the same."""

import asyncio
import sys

from freehold import Freehold


async def main(url: str = "http://localhost:3000", token: str | None = None) -> None:
    async with Freehold(url, token=token) as home:
        item = await home.beads.create("Mend the roof", priority=1, labels=["house"])
        await home.beads.claim(item.id)
        closed = await home.beads.close(item.id, "It no longer leaks")
        print(closed.status, closed.priority, *closed.labels)

        memory = await home.memory.store("The tiles are blue")
        found = await home.memory.list(text="tiles")
        print(*(one.text for one in found.memories))
        await home.memory.forget(memory.id)

        await home.pods.write("notes/the roof.txt", "12 m² of slate")
        document = await home.pods.read("notes/the roof.txt")
        print(document.content.decode())
        await home.pods.delete("notes/the roof.txt")

        page = await home.events.read(newest=True, limit=1)
        await home.events.publish("com.example.roof", {"tiles": 12})
        async for event in home.events.stream(page.cursor, types=["com.example.*"]):
            print(event.type, event.data["tiles"])
            break


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
