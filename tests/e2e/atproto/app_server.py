"""Serves an ASGI application in a thread."""

import logging
import socket
import threading
from collections.abc import Iterator
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
    thread = threading.Thread(target=server.run, args=([listener],), name="served")
    thread.start()
    try:
        wait_until(lambda: server.started or not thread.is_alive())
        assert server.started, "the server did not start"
        yield
    finally:
        server.should_exit = True
        thread.join()
        access.disabled = False
