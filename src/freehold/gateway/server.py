"""The settings of the HTTP server."""

import asyncio
import resource
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from freehold.connection_slots import ConnectionSlots, SlottedConnection
from freehold.gateway.http_protocol import MAX_CONNECTIONS, ServerHttp

# At a stop, running requests get this long to finish. The keeper's own deadline is longer.
DRAIN_SECONDS = 5


def _open_socket(**options: Any) -> asyncio.Protocol:
    """The protocol of a WebSocket. Its library is loaded for the first one."""
    from freehold.gateway.socket_protocol import ServerWebSocket

    return ServerWebSocket(**options)


def make_server_config(
    app: ASGIApp, host: str, port: int, is_proxy: Callable[[str], bool] = lambda _peer: False
) -> uvicorn.Config:
    """`is_proxy` knows the peers that stand for many browsers."""
    places = make_slots(is_proxy)

    class Http(SlottedConnection, ServerHttp):
        slots = places
        head_timeout = None  # ServerHttp has its own

    return uvicorn.Config(
        app,
        host=host,
        port=port,
        http=Http,
        ws=_open_socket,  # type: ignore[arg-type]  # the server only calls it
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
    )


def make_slots(is_proxy: Callable[[str], bool]) -> ConnectionSlots:
    """Half of the files that this process may open are for connections, half of these for one peer."""
    soft, _hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    total = MAX_CONNECTIONS if soft == resource.RLIM_INFINITY else min(MAX_CONNECTIONS, soft // 2)
    return ConnectionSlots(total, total // 2, is_proxy)
