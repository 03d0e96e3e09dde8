"""Which models and agents there are, and which hosts may be reached. clients/typescript/examples/settings.ts is the same."""

import asyncio
import sys

from freehold import Freehold


async def main(url: str = "http://localhost:3000", token: str | None = None) -> None:
    async with Freehold(url, token=token) as home:
        for provider in (await home.models.state()).models:
            print("model", provider.name, provider.kind, "default" if provider.default else "")
        for agent in await home.agents.list():
            if agent.installed:
                print("agent", agent.name)
        allowed = await home.egress.allow("docs.example.org")
        print(*(rule["rule"] for rule in allowed.rules if rule["verdict"] == "allow"))
        await home.egress.forget("docs.example.org")
        print("ready" if (await home.health()).ready else "not ready")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
