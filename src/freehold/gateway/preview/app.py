"""The application for all previews. The guard chooses it by Host; it shares no route with the control center."""

import asyncio
import logging
from collections.abc import Mapping
from contextlib import suppress
from types import SimpleNamespace
from typing import Final

from starlette.types import Message, Receive, Scope, Send

from freehold.computer.library.tunnel import Tunnel
from freehold.connection_slots import keep_connection
from freehold.errors import FreeholdError
from freehold.gateway.addresses import SiteAddresses, rate_limit_key, read_headers
from freehold.gateway.connections import OpenConnection
from freehold.gateway.preview.feature_site import FeatureSite
from freehold.gateway.preview.headers import is_allowed_source
from freehold.gateway.preview.hosts import PreviewHosts, PreviewSite
from freehold.gateway.preview.pages import send_page
from freehold.gateway.preview.passes import PassHolder, PreviewPasses, format_pass_cookie
from freehold.gateway.preview.requests import METHODS, InvalidRequest, forward_request, open_exchange
from freehold.gateway.preview.sockets import SocketRefused, relay_socket
from freehold.gateway.rate_limit import RateLimit
from freehold.gateway.route_scope import ROUTE_KEY
from freehold.gateway.services import Services
from freehold.observe.logs import log_unexpected

RESERVED_PATH = "/.freehold/"
ENTER_PATH = f"{RESERVED_PATH}enter/"
MAX_CONCURRENT = 256
"""Open requests and sockets of all previews: fewer than the gateway can serve, so that it stays reachable."""
MAX_SOCKETS = 64
"""Open sockets among them: each may buffer one message in each direction."""
CONNECT_TIMEOUT = 10.0
RETRY_SECONDS = 2
SIGNED_OUT = 4401
CLOSE_TIMEOUT = 0.25

METRICS_ROUTE: Final = SimpleNamespace(path="preview")

log = logging.getLogger("freehold.gateway.preview")


class PreviewApp:
    """An ASGI application. `find` says which hosts belong to it."""

    def __init__(
        self,
        services: Services,
        hosts: PreviewHosts,
        passes: PreviewPasses,
        addresses: SiteAddresses,
        named: Mapping[str, FeatureSite],
    ) -> None:
        self._services = services
        self._named = named
        self._hosts = hosts
        self._passes = passes
        self._addresses = addresses
        self._anonymous_limit = RateLimit(rate=20, burst=200)
        self._open = {"http": 0, "websocket": 0}

    def find(self, host: bytes) -> PreviewSite | None:
        return self._hosts.find(host)

    def framed_at(self, host: str) -> str | None:
        domain = self._hosts.domain_for(host)
        return domain.csp_source if domain is not None else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[ROUTE_KEY] = METRICS_ROUTE
        scope["headers"] = [(name.lower(), value) for name, value in scope["headers"]]
        headers = read_headers(scope["headers"])
        site = self._hosts.find(headers.get(b"host", b""))
        assert site is not None  # the guard checked it
        if self._is_plain_http(site, scope, headers):
            await send_page(scope, send, 403, "This preview accepts https only", "Open the same address with https.")
            return
        is_socket = scope["type"] == "websocket"
        path: str = scope["path"]
        if not is_socket and path.startswith(RESERVED_PATH):
            await self._enter(site, scope, send)
            return
        holder = self._passes.find_holder(headers.get(b"cookie", b""), site)
        if holder is None:
            await self._refuse_stranger(site, scope, headers, send)
        elif not is_allowed_source(headers, site, socket=is_socket):
            await send_page(
                scope,
                send,
                403,
                "The request comes from another site",
                "A preview accepts requests only from its own pages.",
            )
        elif b"service-worker" in headers:
            # A service worker would survive an undo of its files, and would see the next one-time address.
            await send_page(scope, send, 403, "Service workers are disabled in previews", "")
        elif not is_socket and scope["method"] not in METHODS:
            await send_page(scope, send, 405, "Method not allowed", f"Previews accept {', '.join(sorted(METHODS))}.")
        elif sum(self._open.values()) >= MAX_CONCURRENT or (is_socket and self._open["websocket"] >= MAX_SOCKETS):
            text = f"All previews share {MAX_CONCURRENT} open requests, of which {MAX_SOCKETS} may be sockets."
            await send_page(scope, send, 503, "Too many open requests", text, retry_after=RETRY_SECONDS)
        else:
            self._open[scope["type"]] += 1
            try:
                await self._forward(holder, site, scope, receive, send)
            finally:
                self._open[scope["type"]] -= 1

    def _is_plain_http(self, site: PreviewSite, scope: Scope, headers: dict[bytes, bytes]) -> bool:
        """Whether a trusted proxy reports plain HTTP for a preview that has https."""
        client = scope.get("client")
        protocol = headers.get(b"x-forwarded-proto")
        needs_https = site.domain.scheme == "https"
        return (
            needs_https and protocol not in (None, b"https") and self._addresses.is_proxy(client[0] if client else "")
        )

    async def _enter(self, site: PreviewSite, scope: Scope, send: Send) -> None:
        """Exchange a token for a pass. Requests below the reserved path never reach the app."""
        token = scope["path"].removeprefix(ENTER_PATH) if scope["path"].startswith(ENTER_PATH) else ""
        redeemed = self._passes.redeem_token(token, site) if scope["method"] == "GET" else None
        if redeemed is None:
            text = "Open the preview from the control center again. Each address works once, within 30 seconds."
            await send_page(
                scope, send, 403, "This address was already used", text, frame_origins=site.domain.frame_origins
            )
            return
        value, path = redeemed
        headers = [
            (b"location", path.encode("ascii")),
            (b"set-cookie", format_pass_cookie(value).encode("ascii")),
            (b"referrer-policy", b"no-referrer"),
            (b"cache-control", b"no-store"),
            (b"content-length", b"0"),
        ]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    async def _refuse_stranger(self, site: PreviewSite, scope: Scope, headers: dict[bytes, bytes], send: Send) -> None:
        client = scope.get("client")
        caller = self._addresses.find_caller(
            client[0] if client else "", headers.get(b"x-forwarded-for", b"").decode("latin-1")
        )
        wait = self._anonymous_limit.wait(rate_limit_key(caller))
        if wait > 0:
            await send_page(scope, send, 429, "Too many requests", "Wait a moment.", retry_after=max(1, round(wait)))
            return
        text = "Open it from the preview page of the control center. A preview ends when you sign out."
        await send_page(
            scope, send, 401, "Only the owner can open this preview", text, frame_origins=site.domain.frame_origins
        )

    async def _forward(self, holder: PassHolder, site: PreviewSite, scope: Scope, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        started = closed = False

        async def send_and_note(message: Message) -> None:
            nonlocal started, closed
            started = True
            closed = closed or message["type"] == "websocket.close"
            await send(message)

        keep_connection(scope)
        connection = self._services.connections.open(kind, holder.sign_in, holder.token)
        try:
            await self._connect_and_forward(site, scope, receive, send_and_note)
        except asyncio.CancelledError:
            _reraise_unless_revoked(connection)
            if not started:
                await self._send_page(
                    site, scope, send, 401, "You have signed out", "Sign in and open the preview again."
                )
            elif kind == "websocket" and not closed:
                with suppress(TimeoutError, OSError):
                    async with asyncio.timeout(CLOSE_TIMEOUT):
                        await send({"type": "websocket.close", "code": SIGNED_OUT, "reason": "signed out"})
        except InvalidRequest:
            await self._send_page(
                site, scope, send, 400, "Invalid request", "The address contains characters that are not allowed."
            )
        except SocketRefused as refused:
            status = refused.status if 400 <= refused.status < 600 else 502
            await self._send_page(site, scope, send, status, "The app does not accept a WebSocket here", "")
        except FreeholdError as error:
            if not started:
                await self._send_error(site, scope, send, error)
        except Exception as error:
            error_id = log_unexpected(error, "a preview failed")
            if not started:
                await self._send_page(
                    site, scope, send, 500, "An unexpected error occurred in Freehold", f"Error {error_id}."
                )
        finally:
            self._services.connections.close(connection)

    async def _connect_and_forward(self, site: PreviewSite, scope: Scope, receive: Receive, send: Send) -> None:
        if site.name is not None:
            await self._named[site.name].serve_site(site, scope, receive, send)
            return
        if scope["type"] == "websocket":
            async with await self._connect(site.port) as tunnel:
                await relay_socket(tunnel, site, scope, receive, send)
            return
        # The answer may take long, and nothing is sent to the computer meanwhile.
        with self._services.computer.hold_awake():
            async with await self._connect(site.port) as tunnel:
                await forward_request(open_exchange(tunnel, scope, site), site, scope, receive, send)

    async def _connect(self, port: int) -> Tunnel:
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT):
                return await self._services.computer.forward(port)
        except TimeoutError:
            raise FreeholdError("preview.no-answer", f"Port {port} does not accept the connection") from None

    async def _send_error(self, site: PreviewSite, scope: Scope, send: Send, error: FreeholdError) -> None:
        if site.name is not None:
            await self._send_page(site, scope, send, 503, error.message, error.hint)
            return
        match error.code:
            case "computer.no-listener":
                title, text = f"Nothing listens on port {site.port} yet", "This page reloads by itself."
                services = self._services.manifest.computer.services.items()
                for name in (name for name, service in services if service.port == site.port):
                    text = f"freehold logs service-{name} shows the output of its program. {text}"
            case "computer.not-connected" | "computer.ended" | "computer.lost":
                title, text = "The computer is not connected", "The keeper restarts it. This page reloads by itself."
            case "preview.no-answer":
                title, text = f"Port {site.port} does not answer", "This page reloads by itself."
            case _:
                log.info("the answer of an app was refused", extra={"port": site.port, "error": error.message})
                title, text = f"The program on port {site.port} does not answer with HTTP", f"{error.message}."
                await self._send_page(site, scope, send, 502, title, text)
                return
        await self._send_page(site, scope, send, 503, title, text, retry_after=RETRY_SECONDS)

    async def _send_page(
        self,
        site: PreviewSite,
        scope: Scope,
        send: Send,
        status: int,
        title: str,
        text: str,
        retry_after: int | None = None,
    ) -> None:
        await send_page(
            scope, send, status, title, text, frame_origins=site.domain.frame_origins, retry_after=retry_after
        )


def _reraise_unless_revoked(connection: OpenConnection) -> None:
    """Inside `except CancelledError`: raises it again unless the connection was revoked."""
    if not connection.revoked:
        raise
    connection.task.uncancel()
