"""The front door of the gateway: it stands open at once, and loads the routes at the first request.

The framework, the models of the API and the files of the control center take half of the time of a start and a quarter
of its memory. Until somebody comes, only the keeper's probe is answered.
"""

import asyncio
import traceback
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from starlette.types import Receive, Scope, Send

from freehold.gateway.addresses import SiteAddresses
from freehold.gateway.error_responses import refuse, unexpected_error
from freehold.gateway.security_headers import PLAIN
from freehold.observe.logs import log_unexpected

if TYPE_CHECKING:
    from freehold.gateway.guard import RequestGuard

PROBE_PATH = "/livez"
PROBE_HEADERS = frozenset({b"host", b"connection"})
ALIVE = b'{"alive":true}'


class FrontDoor:
    """An ASGI application. `load` is called in a thread, once; after an error again at the next request."""

    def __init__(
        self,
        load: "Callable[[], RequestGuard]",
        lifespan: Callable[[object], AbstractAsyncContextManager[None]],
        addresses: SiteAddresses,
    ) -> None:
        self.addresses = addresses
        self._probe_hosts = {host.encode() for host, origin in addresses.origins.items() if origin.startswith("http:")}
        self._load = load
        self._lifespan = lifespan
        self._guard: RequestGuard | None = None
        self._loading: asyncio.Future[RequestGuard] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if self._guard is None and self._is_probe(scope):
            await _answer_probe(send)
            return
        try:
            guard = self._guard or await self.load()
        except Exception as error:
            await refuse(unexpected_error(log_unexpected(error, "the routes cannot be loaded")), PLAIN, scope, send)
            return
        await guard(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        """The lifespan of the application: the server says when it begins and ends, and is told of a failure."""
        has_started = False
        await receive()
        try:
            async with self._lifespan(self):
                has_started = True
                await send({"type": "lifespan.startup.complete"})
                await receive()
        except BaseException:
            word = "shutdown" if has_started else "startup"
            await send({"type": f"lifespan.{word}.failed", "message": traceback.format_exc()})
            raise
        await send({"type": "lifespan.shutdown.complete"})

    async def load(self) -> "RequestGuard":
        """The guard with everything behind it. Requests that come meanwhile wait for the same one."""
        if self._guard is None:
            loading = self._loading or asyncio.get_running_loop().run_in_executor(None, self._load)
            self._loading = loading
            try:
                self._guard = await asyncio.shield(loading)
            finally:
                if self._loading is loading and loading.done():
                    self._loading = None
        return self._guard

    def _is_probe(self, scope: Scope) -> bool:
        """The keeper's own probe, exactly as it sends it. All else is for the guard to judge."""
        if scope["type"] != "http" or scope["method"] != "GET" or scope["path"] != PROBE_PATH or scope["query_string"]:
            return False
        headers = dict(scope["headers"])
        is_plain = headers.keys() <= PROBE_HEADERS and len(headers) == len(scope["headers"])
        return is_plain and headers.get(b"host") in self._probe_hosts


async def _answer_probe(send: Send) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(ALIVE)).encode()), *PLAIN.for_data]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": ALIVE})
