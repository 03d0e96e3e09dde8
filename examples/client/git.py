"""Writes a line into a file of a repository and commits it. clients/typescript/examples/git.ts is the same."""

import asyncio
import sys

from freehold import Freehold


async def main(url: str = "http://localhost:3000", token: str | None = None, folder: str = ".") -> None:
    async with Freehold(url, token=token) as home:
        notes = f"{folder}/notes.txt"
        known = (await home.files.read(notes)).content.decode() if await home.files.exists(notes) else ""
        await home.files.write(notes, f"{known}One more line\n")
        await home.git.stage(folder, ["notes.txt"])
        diff = await home.git.diff(folder, file="notes.txt", side="index")
        print(*(line for line in diff.text.splitlines() if line.startswith("+One")))
        await home.git.commit(folder, "Write notes")
        (newest,) = (await home.git.log(folder, limit=1)).commits
        state = await home.git.state(folder)
        print(newest.subject, newest.id == state.commit and "is HEAD", len(state.files))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
