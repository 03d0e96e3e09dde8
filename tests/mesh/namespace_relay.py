"""The relay of nostr-sdk in a network namespace of its own: `python -m tests.mesh.namespace_relay ADDRESS FOLDER`.

Begins with the first line of standard input, and ends with it.
"""

import asyncio
import sys
from pathlib import Path

from tests.mesh.namespace_tls import serve_tls
from tests.support.nostr import sdk_relay


async def serve(address: str, certificates: Path) -> None:
    # Open: it knows itself by its address behind the proxy only, and would refuse the one that clients sign.
    async with sdk_relay(is_open=True) as url, serve_tls(address, certificates, int(url.rpartition(":")[2])):
        print("ready", flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    sys.stdin.readline()
    asyncio.run(serve(sys.argv[1], Path(sys.argv[2])))
