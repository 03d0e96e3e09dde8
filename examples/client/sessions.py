"""Two prompts in a session, and a request that is rejected. clients/typescript/examples/sessions.ts is the same."""

import asyncio
import sys

from freehold import Freehold


async def main(url: str = "http://localhost:3000", token: str | None = None, *prompts: str) -> None:
    async with Freehold(url, token=token) as home:
        session = await home.sessions.open(title="The roof")
        for prompt in prompts or ("Which files are here?", "Delete them"):
            async for update in session.prompt(prompt):
                if update.kind == "message" and update.seq is not None:  # whole, not a part
                    print(update.data["text"])
                if update.kind == "approval" and update.data["state"] == "pending":
                    print(*(asked.title for asked in await home.sessions.approvals()))
                    print((await session.answer(update.data["id"], "reject")).state)
        print(*(one.title for one in (await home.sessions.list("roof")).sessions))
        await home.sessions.delete(session.id)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
