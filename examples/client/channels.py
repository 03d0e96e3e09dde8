"""A channel that tells what failed, and not at night. clients/typescript/examples/channels.ts is the same."""

import asyncio
import sys

from freehold import Freehold, FreeholdError


async def main(url: str = "http://localhost:3000", token: str | None = None) -> None:
    async with Freehold(url, token=token) as home:
        server = {"server": "smtp.example.org", "sender": "freehold@example.org"}
        channel = await home.channels.add("email", server, name="mail")
        changed = await home.channels.set_preferences("mail", tells=["failed"], quiet_from="22:00", quiet_until="07:00")
        print(channel.kind, *changed.preferences.tells, changed.preferences.quiet_from)
        try:
            await home.channels.test("mail")
        except FreeholdError as error:
            print(error.code)  # it is not paired with you yet: home.channels.pair
        await home.channels.remove("mail")
        print(*(one.name for one in await home.channels.list()))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
