"""What the running SSH server says about itself, over a Unix socket in the run folder."""

import asyncio
import contextlib
import json

from freehold.home import Home

STATUS_TIMEOUT = 0.5


async def count_connections(home: Home) -> int | None:
    """Open connections; None when the server does not answer."""
    with contextlib.suppress(OSError, ValueError, TimeoutError, KeyError):
        async with asyncio.timeout(STATUS_TIMEOUT):
            reader, writer = await asyncio.open_unix_connection(str(home.run / "ssh.sock"))
            try:
                return int(json.loads(await reader.readline())["connected"])
            finally:
                writer.close()
    return None
