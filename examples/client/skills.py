"""Shipped skills: looked at, added, switched off, removed. clients/typescript/examples/skills.ts is the same."""

import asyncio
import sys

from freehold import Freehold


async def main(url: str = "http://localhost:3000", token: str | None = None) -> None:
    async with Freehold(url, token=token) as home:
        looked = (await home.skills.look("shipped")).skills
        for one in looked:
            print(one.content.name, len(one.content.scripts), len(one.content.findings))
        (name,) = await home.skills.add([looked[0].content.digest])
        print((await home.skills.get(name)).skill.source.kind)
        print("on" if (await home.skills.switch(name, on=False)).on else "off")
        await home.skills.remove(name)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
