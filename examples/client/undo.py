"""An agent asks, changes a file, and is undone. clients/typescript/examples/undo.ts is the same."""

import asyncio
import sys

from freehold import Freehold


async def main(
    url: str = "http://localhost:3000", token: str | None = None, prompt: str = "Write a haiku into haiku.txt"
) -> None:
    async with Freehold(url, token=token) as home:
        session = await home.sessions.open()
        async for update in session.prompt(prompt):
            if update.kind == "approval" and update.data["state"] == "pending":
                print("asked:", update.data["title"])
                await session.answer(update.data["id"], "once")
        (entry,) = await home.history.log(limit=1)
        changes = (await home.history.changes(entry.id)).changes
        for change in changes:
            print(change["word"], change["path"], await home.files.exists(f"/{change['path']}"))
        print((await home.history.undo()).summary)
        for change in changes:
            print(change["path"], await home.files.exists(f"/{change['path']}"))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
