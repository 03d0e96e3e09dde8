"""An agent in a computer and a copy of its own. clients/typescript/examples/runs.ts is the same."""

import asyncio
import sys

from freehold import Freehold


async def main(
    url: str = "http://localhost:3000", token: str | None = None, prompt: str = "Which files are here?"
) -> None:
    async with Freehold(url, token=token) as home:
        run = await home.runs.spawn(prompt, folder=".", permissions=["network"])
        async for event in home.runs.stream(run.id):
            if event.kind == "message":
                print(event.data["text"])
        run = await home.runs.get(run.id)
        print(run.state, run.added, run.changed, run.removed)
        for file in (await home.runs.changes(run.id)).files:
            print(file.kind, file.path)
        if run.outcome == "pending":
            print((await home.runs.take_changes(run.id, "drop")).outcome)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
