"""Who may come in, and which secrets agents may use. clients/typescript/examples/access.ts is the same."""

import asyncio
import sys
from pathlib import Path

from freehold import Freehold


async def main(
    url: str = "http://localhost:3000", token: str | None = None, key: str = "~/.ssh/id_ed25519.pub"
) -> None:
    async with Freehold(url, token=token) as home:
        print((await home.me()).who)
        for one in await home.tokens.list():
            print("token", one.name, *sorted(one.scopes))
        for browser in await home.sign_ins.list():
            print("browser", browser.label, browser.method)
        for credential in await home.credentials.list():
            print("credential", credential.name, credential.host, credential.writes)
        made = await home.ssh.certify(Path(key).expanduser().read_text(), hours=1, label="laptop")
        print("ssh", *(one.label for one in await home.ssh.list() if not one.revoked))
        await home.ssh.revoke(made.id)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
