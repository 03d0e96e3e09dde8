"""A proxy on loopback for a program or a client of the host that must go out as the computer does: through the rules."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from freehold.egress.stream import SocketStream

if TYPE_CHECKING:
    from freehold.egress.service import EgressService


@asynccontextmanager
async def serve_host_proxy(egress: "EgressService", session: str) -> AsyncIterator[str]:
    """The address of the proxy, with the credentials of a session in it, for as long as this is open."""
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        serving.add(task)
        try:
            await egress.handle(SocketStream(reader, writer), who=f"session:{session}")
        except asyncio.CancelledError:
            return  # closed below; a cancelled task would be logged as an error
        finally:
            serving.discard(task)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        port = server.sockets[0].getsockname()[1]
        yield f"http://{session}:{egress.credentials.issue(session)}@127.0.0.1:{port}"
    finally:
        server.close()
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
