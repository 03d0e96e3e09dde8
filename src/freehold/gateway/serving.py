"""How the gateway's application is served."""

import uvicorn
from starlette.types import ASGIApp

# A stop drains requests for this long; the keeper's own deadline is longer.
DRAIN = 5
MOST_CONNECTIONS = 4096


def server_config(app: ASGIApp, host: str, port: int) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http="httptools",
        ws="websockets-sansio",
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
        limit_concurrency=MOST_CONNECTIONS,
        h11_max_incomplete_event_size=64 * 1024,
    )
