"""What models cost, a limit for it, a secret, and the kill switch. clients/typescript/examples/usage.ts is the same."""

import asyncio
import sys

from freehold import Freehold


async def main(url: str = "http://localhost:3000", token: str | None = None) -> None:
    async with Freehold(url, token=token) as home:
        for row in (await home.usage.report("provider")).rows:
            print("used", *row.key, row.requests)
        for budget in await home.budgets.set("*", day_cost=2.5):
            print("budget", budget.scope, budget.limit, budget.of)
        await home.budgets.set("*")  # those of the manifest apply again
        await home.secrets.set("example", "a value that no call returns")
        print("secret", *(one.name for one in await home.secrets.list() if one.name == "example"))
        await home.secrets.remove("example")
        print("runs", *(one.name for one in (await home.programs.state()).programs if one.name == "gateway"))
        print("stopped:", (await home.kill_switch.stop("to try it")).why)
        print("stopped" if (await home.kill_switch.lift()).stopped else "lifted")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
