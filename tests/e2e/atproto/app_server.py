"""Serves an ASGI application in a thread."""

import asyncio
import logging
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp
from tests.e2e.atproto.certificates import Certificates
from tests.support.condition import wait_until


@contextmanager
def serve(
    app: ASGIApp, listener: socket.socket, certificates: Certificates | None = None, *, lifespan: bool = False
) -> Iterator[None]:
    """Serve until the block ends; with https when there are certificates."""
    config = uvicorn.Config(
        app,
        log_config=None,
        lifespan="on" if lifespan else "off",
        ws="none",
        ssl_certfile=certificates.certificate if certificates else None,
        ssl_keyfile=str(certificates.key) if certificates else None,
        timeout_graceful_shutdown=1,
    )
    access = logging.getLogger("uvicorn.access")
    access.disabled = True  # the address of the callback contains the code
    server = uvicorn.Server(config)
    thread = threading.Thread(target=asyncio.run, args=(_run(server, listener),), name="served")
    thread.start()
    try:
        wait_until(lambda: server.started or not thread.is_alive())
        assert server.started, "the server did not start"
        yield
    finally:
        server.should_exit = True
        thread.join()
        access.disabled = False


async def _run(server: uvicorn.Server, listener: socket.socket) -> None:
    """A connection with TLS that waits for the goodbye of a browser that has ended does not outlive the server."""
    await server.serve([listener])
    transports: Mapping[int, asyncio.Transport] = asyncio.get_running_loop()._transports  # type: ignore[attr-defined]
    for transport in tuple(transports.values()):
        transport.abort()
    await asyncio.sleep(0)  # they close their sockets
