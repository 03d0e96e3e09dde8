"""How the gateway's application is served."""

import uvicorn
from starlette.types import ASGIApp, Scope
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

# A stop drains requests for this long; the keeper's own deadline is longer.
DRAIN = 5
MAX_CONNECTIONS = 4096


_LONGER = "freehold.longer-messages"


class Sockets(WebSocketsSansIOProtocol):
    """The server's sockets; a route may take longer messages on one of them than are taken on all others."""

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if not self.close_sent:  # else the handshake was refused, and there is no scope
            self.scope["extensions"][_LONGER] = {"take": self._take}

    def _take(self, most: int) -> None:
        self.conn.max_message_size = most


def take_longer_messages(scope: Scope, most: int) -> None:
    """From now on, this socket's messages may have so many bytes. Does nothing under another server."""
    offered = scope.get("extensions", {}).get(_LONGER)
    if offered is not None:
        offered["take"](most)


def server_config(app: ASGIApp, host: str, port: int) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http="httptools",
        ws=Sockets,
        ws_max_size=64 * 1024,
        ws_per_message_deflate=False,
        ws_ping_interval=20,
        ws_ping_timeout=20,
        log_config=None,
        # At `info` it writes the address of every socket, with its query.
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        # Forwarded headers are read by the guard, which knows whom to believe.
        proxy_headers=False,
        timeout_graceful_shutdown=DRAIN,
        limit_concurrency=MAX_CONNECTIONS,
        h11_max_incomplete_event_size=64 * 1024,
    )
