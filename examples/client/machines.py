"""Other Freeholds, and other machines of yours. clients/typescript/examples/machines.ts is the same."""

import asyncio
import sys

from freehold import Freehold


async def main(url: str = "http://localhost:3000", token: str | None = None) -> None:
    async with Freehold(url, token=token) as home:
        mesh = await home.mesh.status()
        print(mesh.mode, mesh.name)
        invitation = await home.mesh.create_code(["work"], name="friend")
        whose = "is yours" if invitation.npub == mesh.npub else "is not yours"
        print(invitation.code.partition(":")[0], whose)
        for neighbour in await home.mesh.neighbours():
            print(neighbour.name, *neighbour.grants)
        fleet = await home.fleet.get()
        print("fleet", fleet.computer_count, fleet.waiting_count)
        for node in fleet.nodes:
            print(node.name, node.state, node.free_cpus)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
