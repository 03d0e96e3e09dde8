"""The last events of the timeline, then new ones as they happen. clients/typescript/examples/timeline.ts is the same."""

import asyncio
import sys

from freehold import Freehold


async def main(url: str = "http://localhost:3000", token: str | None = None, count: str = "3") -> None:
    async with Freehold(url, token=token) as home:
        page = await home.timeline.read(limit=1)
        left = int(count)
        async for event in home.timeline.follow(after=(page.events[0].seq if page.events else 1) - 1):
            print(event.seq, event.kind)
            left -= 1
            if left == 0:
                break


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
