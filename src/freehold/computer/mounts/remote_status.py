"""What the program of remote mounts says about each of them, over a Unix socket in the run folder."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import asdict
from pathlib import Path

from freehold.computer.mounts.remote_state import RemoteMountState
from freehold.strict_json import decode

STATUS_TIMEOUT = 0.5
MAX_STATUS = 1024 * 1024


@contextlib.asynccontextmanager
async def serve_states(path: Path, read: Callable[[], Mapping[str, RemoteMountState]]) -> AsyncIterator[None]:
    """Send each caller one line: the state of every mount, by its place in the computer."""

    def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(json.dumps({target: asdict(state) for target, state in read().items()}).encode() + b"\n")
        writer.close()

    server = await asyncio.start_unix_server(answer, str(path))
    try:
        yield
    finally:
        server.close()
        path.unlink(missing_ok=True)


async def read_states(path: Path) -> dict[str, RemoteMountState]:
    """Empty when the program does not answer."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        async with asyncio.timeout(STATUS_TIMEOUT):
            reader, writer = await asyncio.open_unix_connection(str(path), limit=MAX_STATUS)
            try:
                return decode(dict[str, RemoteMountState], json.loads(await reader.readline()))
            finally:
                writer.close()
    return {}
