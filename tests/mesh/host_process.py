"""A host Freehold in a process of its own, so that what it costs can be measured: `python -m tests.mesh.host_process HOME`.

Prints its address; reads the public keys of its clients from standard input, one a line, until an empty line; prints
another line when it knows them; ends when standard input does.
"""

import asyncio
import sys
from pathlib import Path

from tests.mesh.freeholds import running_mesh

HOST = '[mesh]\nmode = "host"\n'


async def serve(home: Path) -> None:
    async with running_mesh(home, HOST) as host:
        print(host.url, flush=True)
        keys = await asyncio.to_thread(lambda: [line.strip() for line in iter(sys.stdin.readline, "\n")])
        add = host.mesh.neighbours.add
        for number, key in enumerate(keys):
            add(key, f"client-{number}", url=None, did=None, grants=("register",), given=(), who="bench")
        print("known", flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
