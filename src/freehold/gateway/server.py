"""The settings of the HTTP server."""

import uvicorn
from starlette.types import ASGIApp, Scope
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

# At a stop, running requests get this long to finish. The keeper's own deadline is longer.
DRAIN_SECONDS = 5
MAX_CONNECTIONS = 4096


_MESSAGE_LIMIT = "freehold.message-limit"


class ServerWebSocket(WebSocketsSansIOProtocol):
    """The server's WebSocket protocol. A route may raise the message limit of one socket."""

    def handle_connect(self, event: Request) -> None:
        super().handle_connect(event)
        if not self.close_sent:  # otherwise the handshake was refused and there is no scope
            self.scope["extensions"][_MESSAGE_LIMIT] = {"set": self._set_message_limit}

    def _set_message_limit(self, limit: int) -> None:
        self.conn.max_message_size = limit


def raise_message_limit(scope: Scope, limit: int) -> None:
    """Set the size limit of messages on this socket, in bytes. Does nothing under another server."""
    extension = scope.get("extensions", {}).get(_MESSAGE_LIMIT)
    if extension is not None:
        extension["set"](limit)


def make_server_config(app: ASGIApp, host: str, port: int) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http="httptools",
        ws=ServerWebSocket,
        ws_max_size=64 * 1024,
        ws_per_message_deflate=False,
        ws_ping_interval=20,
        ws_ping_timeout=20,
        log_config=None,
        # At `info` it logs the address of every socket with its query.
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        # The guard reads forwarded headers: it knows the trusted proxies.
        proxy_headers=False,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        limit_concurrency=MAX_CONNECTIONS,
        h11_max_incomplete_event_size=64 * 1024,
    )
