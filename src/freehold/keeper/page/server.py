"""Serves the recovery page in the keeper's event loop."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from freehold.connection_slots import ConnectionSlots, SlottedConnection
from freehold.keeper.page.frame import HEADERS
from freehold.keeper.page.guard import PageGuard, ServedHosts
from freehold.keeper.page.restore_jobs import RestoreJobs
from freehold.keeper.page.routes import PageRoutes
from freehold.keeper.retry import retry_until_done

if TYPE_CHECKING:
    from freehold.keeper.api import KeeperApi


MAX_CONNECTIONS = 64


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do nothing: the keeper handles signals."""
        yield


logging.getLogger("uvicorn").setLevel(
    logging.WARNING
)  # it logs every start and stop, which are in the timeline already


@contextlib.asynccontextmanager
async def serve_page(api: "KeeperApi", sockets: list[socket.socket]) -> AsyncIterator[None]:
    port = sockets[0].getsockname()[1]
    names = ServedHosts.for_address(api.plan.keeper_host, port, api.plan.public_url)
    async with asyncio.TaskGroup() as group:
        routes = PageRoutes(api, RestoreJobs(group))
        app = Starlette(routes=routes.table(), exception_handlers=routes.errors())
        server = _Server(_make_config(PageGuard(app, names, api.sign_ins.verify, HEADERS)))
        serving = group.create_task(retry_until_done("the recovery page", lambda: server.serve(sockets=sockets)))
        try:
            yield
        finally:
            server.should_exit = True
            # Do not wait for idle connections of browsers.
            server.force_exit = True
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({serving}, timeout=3)


def _make_config(app: PageGuard) -> uvicorn.Config:
    class Connection(SlottedConnection, H11Protocol):
        slots = ConnectionSlots(MAX_CONNECTIONS, MAX_CONNECTIONS)

    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=16 * 1024,
    )
