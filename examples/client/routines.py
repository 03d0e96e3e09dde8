"""Work that begins by itself. clients/typescript/examples/routines.ts is the same."""

import asyncio
import sys

from freehold import Freehold


async def main(url: str = "http://localhost:3000", token: str | None = None) -> None:
    async with Freehold(url, token=token) as home:
        spec = {"cron": "0 8 * * MON", "command": "date >> /workspace/mondays.txt"}
        print(len((await home.routines.plan(spec, count=3)).times))
        print((await home.routines.add("mondays", spec)).trigger)
        run = await home.routines.run("mondays")
        while not run.is_finished:
            await asyncio.sleep(0.2)
            run = await home.routines.get_run("mondays", run.id)
        print(*(one.state for one in (await home.routines.runs("mondays", limit=1)).runs))
        print((await home.routines.pause("mondays")).state)
        await home.routines.remove("mondays")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
