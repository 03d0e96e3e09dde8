"""What the running SSH server says about itself, over a Unix socket in the run folder."""

import asyncio
import contextlib
import json

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.keeper.calls import GetKeeperStatus
from freehold.keeper.client import KeeperClient

STATUS_TIMEOUT = 0.5


async def count_connections(home: Home) -> int | None:
    """Open connections, 0 for a server that waits for its first one; None when the server does not answer."""
    with contextlib.suppress(OSError, ValueError, TimeoutError, KeyError):
        async with asyncio.timeout(STATUS_TIMEOUT):
            reader, writer = await asyncio.open_unix_connection(str(home.run / "ssh.sock"))
            try:
                return int(json.loads(await reader.readline())["connected"])
            finally:
                writer.close()
    with contextlib.suppress(FreeholdError):
        programs = (await KeeperClient(home, timeout=STATUS_TIMEOUT).call(GetKeeperStatus())).programs
        return 0 if any(program.name == "ssh" and program.state == "idle" for program in programs) else None
    return None
