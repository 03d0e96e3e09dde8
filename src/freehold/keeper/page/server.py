"""Serving the page inside the keeper's own loop."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import uvicorn
from starlette.applications import Starlette

from freehold.keeper.page.frame import HEADERS
from freehold.keeper.page.guard import Guard, Names
from freehold.keeper.page.routes import Routes
from freehold.keeper.tending import tended

if TYPE_CHECKING:
    from freehold.keeper.desk import Desk


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals are the keeper's."""
        yield


logging.getLogger("uvicorn").setLevel(logging.WARNING)  # it tells of every start and stop; the timeline does, too


@contextlib.asynccontextmanager
async def serve_page(desk: "Desk", sockets: list[socket.socket]) -> AsyncIterator[None]:
    port = sockets[0].getsockname()[1]
    names = Names.of(desk.plan.keeper_host, port, desk.plan.public_url)
    routes = Routes(desk)
    app = Guard(
        Starlette(routes=routes.table(), exception_handlers=routes.errors()), names, desk.sessions.verify, HEADERS
    )
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=64,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=2,
        h11_max_incomplete_event_size=16 * 1024,
    )
    server = _Server(config)
    async with asyncio.TaskGroup() as group:
        serving = group.create_task(tended("the page", lambda: server.serve(sockets=sockets)))
        try:
            yield
        finally:
            server.should_exit = True
            # Kept-alive connections of a browser are no reason to wait.
            server.force_exit = True
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait({serving}, timeout=3)
