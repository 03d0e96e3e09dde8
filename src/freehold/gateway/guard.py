"""The guard: wraps the whole application and refuses by default.

It checks the scope of every route before the application sees the request, so a mistake in a route cannot open it.
"""

import asyncio
import hashlib
import hmac
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

from freehold.connection_slots import keep_connection
from freehold.errors import FreeholdError
from freehold.gateway.addresses import SiteAddresses, rate_limit_key, read_headers
from freehold.gateway.browser_key import SUBPROTOCOL, offers_key, read_key
from freehold.gateway.connections import OpenConnection, OpenConnections
from freehold.gateway.download_tickets import TICKET, DownloadTickets
from freehold.gateway.error_responses import (
    NOT_FOUND,
    NOT_SIGNED_IN,
    ErrorResponse,
    body_too_large,
    rate_limited,
    refuse,
    unexpected_error,
)
from freehold.gateway.page import render_error_page
from freehold.gateway.principal import Principal, RequestSignature, SignatureVerifier, missing_scope
from freehold.gateway.rate_limit import RateLimit
from freehold.gateway.route_scope import ROUTE_KEY
from freehold.gateway.routing import RouteTable, ScopedRoute
from freehold.gateway.security_headers import PLAIN, SecurityHeaders
from freehold.gateway.steady_time import steady_time
from freehold.identity.sign_ins import COOKIE_OF_0_1, SignIns
from freehold.identity.tokens import ApiTokens
from freehold.observe.logs import log_unexpected

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
PROBES = frozenset({"/livez", "/ready", "/health"})
# How long a caller without a credential may keep a request open.
ANONYMOUS_REQUEST_TIMEOUT = 60.0
SIGNED_OUT = 4401
BROKEN = 1011


WRONG_HOST = ErrorResponse(
    FreeholdError(
        "gateway.wrong-host",
        "This Freehold does not serve that host name",
        hint="Set gateway.public_url in freehold.toml",
    )
)
PLAIN_HTTP = ErrorResponse(
    FreeholdError("gateway.plain-http", "This Freehold accepts https only", hint="Open the same address with https")
)
WRONG_ORIGIN = ErrorResponse(
    FreeholdError(
        "gateway.wrong-origin",
        "The request comes from a page of another site",
        hint="Open the control center at its own address",
    )
)
WRONG_BODY = ErrorResponse(
    FreeholdError("request.bad-signature", "The body of the request is not the one that was signed")
)
TOO_SLOW = ErrorResponse(FreeholdError("gateway.too-slow", "The request took too long"))


class BodyTooLarge(HTTPException):
    """Raised while a body is read. It is an HTTPException because the framework wraps every other exception."""

    def __init__(self, limit: int) -> None:
        super().__init__(413)
        self.limit = limit


@dataclass(frozen=True, slots=True)
class _Site:
    """One host name that is served."""

    host: str
    origin: bytes
    security_headers: SecurityHeaders
    has_pages: bool


class PreviewHandler(Protocol):
    """The application for the hosts of previews. It shares no route and no host with the control center."""

    def find(self, host: bytes) -> object | None:
        """The preview at this host; None when it is not the host of a preview."""
        ...

    def framed_at(self, host: str) -> str | None:
        """The source for `frame-src` in the content security policy of the pages on this host."""
        ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class RequestGuard:
    """ASGI middleware. It checks, in this order: host, origin, rate limit, route, scope, body size."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        routes: RouteTable,
        addresses: SiteAddresses,
        sign_ins: SignIns,
        tokens: ApiTokens,
        connections: OpenConnections,
        tickets: DownloadTickets | None = None,
        previews: PreviewHandler | None = None,
        signatures: SignatureVerifier | None = None,
        anonymous_limit: RateLimit | None = None,
        owner_limit: RateLimit | None = None,
    ) -> None:
        self._app = app
        self.routes = routes
        self.addresses = addresses
        self._sign_ins = sign_ins
        self._tokens = tokens
        self._connections = connections
        self._tickets = tickets
        self._previews = previews
        self._signatures = signatures
        self._anonymous_limit = anonymous_limit or RateLimit(rate=20, burst=200)
        self._owner_limit = owner_limit or RateLimit(rate=2_000, burst=10_000)
        self._sites = {
            host.encode(): _Site(
                host,
                origin.encode(),
                SecurityHeaders(
                    https=origin.startswith("https:"), frames=previews.framed_at(host) if previews else None
                ),
                host in addresses.page_hosts,
            )
            for host, origin in addresses.origins.items()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind: str = scope["type"]
        raw = scope["headers"]
        if kind == "websocket":  # the server does not lower them for sockets
            raw = scope["headers"] = [(name.lower(), value) for name, value in raw]
        headers = dict(raw)
        if len(headers) != len(raw):
            headers = read_headers(raw)
        host = headers.get(b"host", b"").lower()
        site = self._sites.get(host)
        if site is None and self._previews is not None and self._previews.find(host) is not None:
            await self._previews(scope, receive, send)  # another origin, with no route of ours
            return
        if site is None:
            await refuse(WRONG_HOST, PLAIN, scope, send)
            return
        if not site.has_pages and _is_for_a_page(scope):
            await self._send_to_pages(site, scope, send)
            return
        try:
            decision = self._decide(kind, site, scope, headers)
        except Exception as error:
            decision = unexpected_error(log_unexpected(error, "the guard failed"))
        if isinstance(decision, ErrorResponse):
            page = render_error_page(decision, scope, headers)
            if page is None:
                await refuse(decision, site.security_headers, scope, send)
                return
            answer = {"type": "http.response.start", "status": page.status_code}
            await send({**answer, "headers": site.security_headers.add(page.raw_headers)})
            await send({"type": "http.response.body", "body": page.body})
            return
        principal, route = decision
        if "state" not in scope:
            scope["state"] = {}
        scope["state"]["principal"] = principal
        scope[ROUTE_KEY] = route.route
        if principal.sign_in is not None or principal.token is not None:
            keep_connection(scope)
        connection = self._connections.open(route.kind, principal.sign_in, principal.token)
        try:
            if kind == "websocket":
                chosen = SUBPROTOCOL if offers_key(headers) else None
                await self._pass_socket(connection, site.security_headers, chosen, scope, receive, send)
            else:
                await self._pass_request(connection, route, site.security_headers, scope, receive, send)
        finally:
            self._connections.close(connection)

    def _decide(
        self, kind: str, site: "_Site", scope: Scope, headers: Mapping[bytes, bytes]
    ) -> tuple[Principal, ScopedRoute] | ErrorResponse:
        client = scope.get("client")
        caller = client[0] if client else ""
        if self.addresses.proxies:
            if self.addresses.is_plain_http(site.host, caller, headers.get(b"x-forwarded-proto")):
                return PLAIN_HTTP
            caller = self.addresses.find_caller(caller, headers.get(b"x-forwarded-for", b"").decode("latin-1"))
        method: str = scope.get("method", "GET")
        path: str = scope["path"]
        key = read_key(headers, kind) if site.has_pages else None
        acts = kind == "websocket" or method not in SAFE
        if not _is_own_origin(headers, site.origin, is_page=key is not None, acts=acts, path=path):
            return WRONG_ORIGIN
        try:
            principal = self._identify(headers, key, caller) or self._read_signature(scope, site, headers, caller)
        except FreeholdError as error:
            wait = self._anonymous_limit.wait(rate_limit_key(caller))
            # Another Freehold whose clock is wrong learns the time from here.
            now = (b"freehold-time", str(int(steady_time())).encode())
            return rate_limited(wait) if wait > 0 else ErrorResponse(error, (now,))
        if site.has_pages and method == "GET" and kind == "http" and b"authorization" not in headers:
            principal = self._redeem_ticket(scope, principal)
        is_known = principal.sign_in is not None or principal.token is not None
        wait = self._owner_limit.wait(principal.who) if is_known else self._anonymous_limit.wait(rate_limit_key(caller))
        if wait > 0:
            return rate_limited(wait)
        route = self.routes.find(kind, "GET" if method == "HEAD" else method, path)
        if route is None:
            return self._no_route(path) if is_known else NOT_SIGNED_IN
        if not principal.has_scope(route.scope):
            return NOT_SIGNED_IN if principal.token is None else ErrorResponse(missing_scope(route.scope))
        length = headers.get(b"content-length")
        if length is not None and not (length.isdigit() and int(length) <= route.max_body):
            return body_too_large(route.max_body)
        return principal, route

    def _read_signature(self, scope: Scope, site: _Site, headers: Mapping[bytes, bytes], caller: str) -> Principal:
        """Another Freehold, or nobody."""
        scheme, _, value = headers.get(b"authorization", b"").partition(b" ")
        if self._signatures is None or scheme.lower() != b"nostr":
            return Principal(address=caller)
        target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        url = (site.origin + target).decode("latin-1")
        found = self._signatures.verify(value, scope.get("method", "GET"), url)
        return Principal(token=None if found is None else found.token, address=caller, signature=found)

    def _identify(self, headers: Mapping[bytes, bytes], key: str | None, caller: str) -> Principal | None:
        """The owner's browser or a token; None when the request has neither, or one that is not valid."""
        if key is not None:
            return Principal(sign_in=self._sign_ins.verify(key), address=caller)
        scheme, _, bearer = headers.get(b"authorization", b"").partition(b" ")
        token = self._tokens.verify(bearer.decode("latin-1")) if scheme.lower() == b"bearer" else None
        return None if token is None else Principal(token=token, address=caller)

    def _redeem_ticket(self, scope: Scope, nobody: Principal) -> Principal:
        query: bytes = scope["query_string"]
        if self._tickets is None or TICKET not in query:
            return nobody
        scope["query_string"] = query.rpartition(TICKET)[0].removesuffix(b"&")  # no route sees it
        return replace(nobody, sign_in=self._tickets.redeem(scope["raw_path"], query))

    async def _send_to_pages(self, site: _Site, scope: Scope, send: Send) -> None:
        """Redirect a browser from `localhost` to the name that only the control center has, with path and query."""
        path: bytes = scope["raw_path"] if scope["raw_path"].startswith(b"/") else b"/"
        target = path + (b"?" + scope["query_string"] if scope["query_string"] else b"")
        gone = f"{COOKIE_OF_0_1}=; Path=/; Secure; HttpOnly; Max-Age=0"
        headers = [
            (b"location", self.addresses.local_pages.encode() + target),
            (b"set-cookie", gone.encode()),
            (b"content-length", b"0"),
        ]
        await send({"type": "http.response.start", "status": 307, "headers": site.security_headers.add(headers)})
        await send({"type": "http.response.body", "body": b""})

    def _no_route(self, path: str) -> ErrorResponse:
        methods = self.routes.list_methods(path)
        if not methods:
            return NOT_FOUND
        allowed = ", ".join(methods)
        message = f"This address does not accept this method. It accepts {allowed}"
        return ErrorResponse(FreeholdError("request.method", message), ((b"allow", allowed.encode()),))

    async def _pass_request(
        self,
        connection: OpenConnection,
        route: ScopedRoute,
        security_headers: SecurityHeaders,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = security_headers.add(message["headers"])
            await send(message)

        if scope["method"] == "HEAD":  # handled as GET; the server omits the body
            scope = {**scope, "method": "GET"}
        signature: RequestSignature | None = scope["state"]["principal"].signature
        if signature is None:
            if scope["method"] not in SAFE:
                receive = _limit_body(receive, route.max_body)
            running = self._app(scope, receive, send_with_headers)
        else:
            running = self._pass_signed(signature.body, route.max_body, scope, receive, send_with_headers)
        if connection.sign_in is None and connection.token is None:
            running = _with_timeout(running)
        try:
            await running
        except asyncio.CancelledError:
            _reraise_unless_revoked(connection)
            refusal = NOT_SIGNED_IN
        except _TooSlow:
            refusal = TOO_SLOW
        except _Refused as refused:
            refusal = refused.response
        except Exception as error:
            refusal = unexpected_error(log_unexpected(error, method=scope["method"], path=route.path))
        else:
            return
        if not started:
            await refuse(refusal, security_headers, scope, send)

    async def _pass_signed(self, digest: str, max_body: int, scope: Scope, receive: Receive, send: Send) -> None:
        """The whole body is read before the application sees any of it: its signature covers no other."""
        parts: list[bytes] = []
        await _with_timeout(_read_body(receive, max_body, parts))
        body = b"".join(parts)
        if not hmac.compare_digest(hashlib.sha256(body).hexdigest(), digest):
            raise _Refused(WRONG_BODY)
        waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_again() -> Message:
            return waiting.pop() if waiting else await receive()

        await self._app(scope, receive_again, send)

    async def _pass_socket(
        self,
        connection: OpenConnection,
        security_headers: SecurityHeaders,
        subprotocol: str | None,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        accepted = over = False

        async def receive_watched() -> Message:
            nonlocal over
            message = await receive()
            over = over or message["type"] == "websocket.disconnect"
            return message

        async def send_watched(message: Message) -> None:
            nonlocal accepted, over
            if message["type"] == "websocket.accept":
                accepted = True
                message["subprotocol"] = subprotocol
            over = over or message["type"] == "websocket.close"
            await send(message)

        try:
            await self._app(scope, receive_watched, send_watched)
        except asyncio.CancelledError:
            _reraise_unless_revoked(connection)
            code, reason, refusal = SIGNED_OUT, "signed out", NOT_SIGNED_IN
        except FreeholdError as error:
            refusal = ErrorResponse(error)
            code, reason = 4000 + refusal.status, error.code
        except Exception as error:
            if _is_disconnect(error):
                return
            refusal = unexpected_error(log_unexpected(error, path=scope["path"]))
            code, reason = BROKEN, f"error {refusal.error_id}"
        else:
            return
        if over:
            return
        if accepted:
            # A client that does not read will not read this either; the server then closes the connection.
            with suppress(TimeoutError, OSError):
                async with asyncio.timeout(0.25):
                    await send({"type": "websocket.close", "code": code, "reason": reason})
        else:
            await refuse(refusal, security_headers, scope, send)


def _is_for_a_page(scope: Scope) -> bool:
    """Whether a request asks for a page of the control center or one of its files, and not for the API or a probe."""
    if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
        return False
    path: str = scope["path"]
    return not (path == "/v1" or path.startswith("/v1/") or path in PROBES)


def _is_own_origin(headers: Mapping[bytes, bytes], origin_here: bytes, *, is_page: bool, acts: bool, path: str) -> bool:
    """Whether the request comes from one of our own pages, or not from a browser."""
    origin = headers.get(b"origin")
    if origin is not None:
        return origin == origin_here
    if acts:
        # A page names its origin whenever it acts. A browser that hides it sends cookies; a script does not.
        return not is_page and b"cookie" not in headers
    # Pages of other sites may not send requests to the API at all, so that timing tells them nothing.
    site = headers.get(b"sec-fetch-site")
    return site is None or site in (b"same-origin", b"none") or not path.startswith("/v1/")


class _TooSlow(Exception):
    pass


class _Refused(Exception):
    def __init__(self, response: ErrorResponse) -> None:
        super().__init__(response.error.code)
        self.response = response


async def _with_timeout(running: Awaitable[None]) -> None:
    deadline = asyncio.timeout(ANONYMOUS_REQUEST_TIMEOUT)
    try:
        async with deadline:
            await running
    except TimeoutError:
        if deadline.expired():
            raise _TooSlow from None
        raise


def _reraise_unless_revoked(connection: OpenConnection) -> None:
    """Inside `except CancelledError`: raises it again unless the connection was revoked."""
    if not connection.revoked:
        raise
    connection.task.uncancel()


def _is_disconnect(error: BaseException) -> bool:
    """Whether the only error is that the client closed its socket."""
    if isinstance(error, BaseExceptionGroup):
        return all(_is_disconnect(inner) for inner in error.exceptions)
    return isinstance(error, WebSocketDisconnect)


async def _read_body(receive: Receive, limit: int, parts: list[bytes]) -> None:
    """All of it, into `parts`. One that was cut off ends early, and has another digest."""
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > limit:
            raise _Refused(body_too_large(limit))
        if not message.get("more_body", False):
            return


def _limit_body(receive: Receive, limit: int) -> Receive:
    """Limits the body while it is read: a chunked body has no length to check before."""
    left = limit

    async def receive_counted() -> Message:
        nonlocal left
        message = await receive()
        if message["type"] == "http.request":
            left -= len(message.get("body", b""))
            if left < 0:
                raise BodyTooLarge(limit)
        return message

    return receive_counted
