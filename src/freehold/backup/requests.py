"""How other processes talk to the program of backups: one line of JSON each way, over a Unix socket in the run folder."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Literal

from freehold.errors import FreeholdError
from freehold.home import Home

RequestedWork = Literal["now", "verify"]
SOCKET = "backup.sock"
TIMEOUT = 2.0
_MAX_LINE = 4096


@contextlib.asynccontextmanager
async def serve_requests(
    home: Home, start: Callable[[RequestedWork], bool], running: Callable[[], str | None]
) -> AsyncIterator[None]:
    """Each caller first gets a line that says which work is being done; the keeper asks for no more.

    `start` asks for work and returns whether it will be done.
    """

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, TimeoutError, ValueError, TypeError, AttributeError):
            async with asyncio.timeout(TIMEOUT):
                writer.write(json.dumps({"running": running()}).encode() + b"\n")
                asked = json.loads(await reader.readline()).get("start")
                started = start(asked) if asked in ("now", "verify") else False
                writer.write(json.dumps({"started": started}).encode() + b"\n")
                await writer.drain()
        writer.close()

    path = home.run / SOCKET
    server = await asyncio.start_unix_server(answer, str(path), limit=_MAX_LINE)
    try:
        yield
    finally:
        server.close()
        path.unlink(missing_ok=True)


async def find_running_work(home: Home) -> str | None:
    """None when nothing is being done, and when the program does not answer."""
    with contextlib.suppress(FreeholdError):
        running = (await _ask(home, None)).get("running")
        return running if isinstance(running, str) else None
    return None


async def request_work(home: Home, work: RequestedWork) -> None:
    """Raises `backup.not-running` or `backup.busy`."""
    if not (await _ask(home, {"start": work})).get("started"):
        raise FreeholdError("backup.busy", "A backup, a verification or a prune is running already")


async def _ask(home: Home, request: dict[str, str] | None) -> dict[str, object]:
    try:
        async with asyncio.timeout(TIMEOUT):
            reader, writer = await asyncio.open_unix_connection(str(home.run / SOCKET), limit=_MAX_LINE)
            try:
                found = json.loads(await reader.readline())
                if request is not None:
                    writer.write(json.dumps(request).encode() + b"\n")
                    found = json.loads(await reader.readline())
            finally:
                writer.close()
    except (OSError, TimeoutError, ValueError):
        raise FreeholdError(
            "backup.not-running",
            "The program of backups does not answer",
            hint="See why with: freehold status, and freehold logs backup",
        ) from None
    return found if isinstance(found, dict) else {}
