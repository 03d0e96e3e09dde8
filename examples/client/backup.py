"""Makes a backup and waits until it is there. clients/typescript/examples/backup.ts is the same."""

import asyncio
import sys

from freehold import Freehold, FreeholdError


async def main(url: str = "http://localhost:3000", token: str | None = None) -> None:
    async with Freehold(url, token=token) as home:
        try:
            await home.backup.start()
        except FreeholdError as error:
            if error.code != "backup.busy":  # one is being made already
                raise
        info = await home.backup.get()
        while info.running is not None or info.last is None:
            await asyncio.sleep(0.2)
            info = await home.backup.get()
        print("has files" if info.last.files > 0 else "is empty")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
