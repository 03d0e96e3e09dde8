"""The guard: wraps the whole application and refuses by default.

It knows every route's need before the application sees the request, so a mistake inside a route cannot open it.
"""

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketDisconnect

from freehold.errors import FreeholdError
from freehold.gateway.addresses import Addresses, crowd_of, read_headers
from freehold.gateway.dispatch import DECIDED
from freehold.gateway.hardening import Hardening
from freehold.gateway.limits import RateLimit
from freehold.gateway.live import Connection, LiveConnections
from freehold.gateway.needs import Declared, Need, NeedTable
from freehold.gateway.page import refusal_page
from freehold.gateway.refusals import (
    NOT_FOUND,
    NOT_SIGNED_IN,
    BodyTooLarge,
    Refusal,
    status_of,
    too_large,
    too_many,
    unexpected,
)
from freehold.identity.sessions import COOKIE, Session, Sessions
from freehold.identity.tokens import Token, Tokens
from freehold.observe.logs import log_unexpected

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
# How long one who is not signed in may keep a request open, by sending it slowly or otherwise.
STRANGERS_PATIENCE = 60.0
SIGNED_OUT = 4401
BROKEN = 1011

PLAIN = Hardening(https=False)

WRONG_HOST = Refusal(
    421, "gateway.wrong-host", "This Freehold does not answer to that name", "Set gateway.public_url in freehold.toml"
)
PLAIN_HTTP = Refusal(
    403, "gateway.plain-http", "This Freehold is reached by https only", "Open the same address with https"
)
WRONG_ORIGIN = Refusal(403, "gateway.wrong-origin", "This request comes from a page that is not ours")
TOO_SLOW = Refusal(408, "gateway.too-slow", "The request took too long", "Try again")


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is calling: the owner's browser, a token of theirs, or nobody (on routes open to anyone)."""

    session: Session | None = None
    token: Token | None = None
    address: str = ""

    @property
    def who(self) -> str:
        if self.token is not None:
            return f"token:{self.token.name}"
        return "owner" if self.session is not None else "anyone"

    def may(self, need: Need) -> bool:
        match need:
            case "anyone":
                return True
            case "browser":
                return self.session is not None
            case scope:
                return self.session is not None or (self.token is not None and self.token.allows(scope))


def principal_of(scope: Mapping[str, Any]) -> Principal:
    """The principal the guard has put into a request or socket."""
    principal = scope["state"]["principal"]
    assert isinstance(principal, Principal)
    return principal


@dataclass(frozen=True, slots=True)
class _Site:
    """One name we answer to."""

    host: str
    origin: bytes
    hardening: Hardening


class Previewing(Protocol):
    """Who answers on the hosts of previews, where no route of ours is served and none of theirs is served on ours."""

    def find(self, host: bytes) -> object | None:
        """None for a host that is no preview's."""
        ...

    def framed_at(self, host: str) -> str | None:
        """What the pages on this host of ours may frame, as a content policy names it."""
        ...

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...


class Guard:
    """ASGI middleware. Every check happens here, in this order: host, origin, rate, route, need, size."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        needs: NeedTable,
        addresses: Addresses,
        sessions: Sessions,
        tokens: Tokens,
        live: LiveConnections,
        previews: Previewing | None = None,
        anonymous_limit: RateLimit | None = None,
        owner_limit: RateLimit | None = None,
    ) -> None:
        self._app = app
        self.needs = needs
        self._addresses = addresses
        self._sessions = sessions
        self._tokens = tokens
        self._live = live
        self._previews = previews
        self._anonymous_limit = anonymous_limit or RateLimit(rate=20, burst=200)
        self._owner_limit = owner_limit or RateLimit(rate=2_000, burst=10_000)
        self._sites = {
            host.encode(): _Site(
                host,
                origin.encode(),
                Hardening(https=origin.startswith("https:"), frames=previews.framed_at(host) if previews else None),
            )
            for host, origin in addresses.origins.items()
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind: str = scope["type"]
        if kind == "lifespan":
            await self._app(scope, receive, send)
            return
        raw = scope["headers"]
        if kind == "websocket":  # the server hands these over as they were spelled
            raw = scope["headers"] = [(name.lower(), value) for name, value in raw]
        headers = dict(raw)
        if len(headers) != len(raw):
            headers = read_headers(raw)
        host = headers.get(b"host", b"").lower()
        site = self._sites.get(host)
        if site is None and self._previews is not None and self._previews.find(host) is not None:
            await self._previews(scope, receive, send)  # another origin, with nothing of ours on it
            return
        if site is None:
            await _refuse(WRONG_HOST, PLAIN, scope, send)
            return
        try:
            decision = self._decide(kind, site, scope, headers)
        except Exception as error:
            decision = unexpected(log_unexpected(error, "the guard failed"))
        if isinstance(decision, Refusal):
            page = refusal_page(decision, scope, headers)
            if page is None:
                await _refuse(decision, site.hardening, scope, send)
                return
            answer = {"type": "http.response.start", "status": page.status_code}
            await send({**answer, "headers": site.hardening.add(page.raw_headers)})
            await send({"type": "http.response.body", "body": page.body})
            return
        principal, route = decision
        if "state" not in scope:
            scope["state"] = {}
        scope["state"]["principal"] = principal
        scope[DECIDED] = route.route
        connection = self._live.open(route.kind, principal.session, principal.token)
        try:
            if kind == "websocket":
                await self._pass_socket(connection, site.hardening, scope, receive, send)
            else:
                await self._pass_request(connection, route, site.hardening, scope, receive, send)
        finally:
            self._live.close(connection)

    def _decide(
        self, kind: str, site: "_Site", scope: Scope, headers: Mapping[bytes, bytes]
    ) -> tuple[Principal, Declared] | Refusal:
        client = scope.get("client")
        caller = client[0] if client else ""
        if self._addresses.proxies:
            if self._addresses.is_plain(site.host, caller, headers.get(b"x-forwarded-proto")):
                return PLAIN_HTTP
            caller = self._addresses.caller(caller, headers.get(b"x-forwarded-for", b"").decode("latin-1"))
        method: str = scope.get("method", "GET")
        path: str = scope["path"]
        if not _may_act(headers, site.origin, acts=kind == "websocket" or method not in SAFE, path=path):
            return WRONG_ORIGIN
        principal = self._identify(headers, caller)
        is_known = principal.session is not None or principal.token is not None
        wait = self._owner_limit.wait(principal.who) if is_known else self._anonymous_limit.wait(crowd_of(caller))
        if wait > 0:
            return too_many(wait)
        route = self.needs.find(kind, "GET" if method == "HEAD" else method, path)
        if route is None:
            return self._not_here(path) if is_known else NOT_SIGNED_IN
        if not principal.may(route.need):
            return NOT_SIGNED_IN if principal.token is None else _lacks(route.need)
        length = headers.get(b"content-length")
        if length is not None and not (length.isdigit() and int(length) <= route.most_body):
            return too_large(route.most_body)
        return principal, route

    def _identify(self, headers: Mapping[bytes, bytes], caller: str) -> Principal:
        authorization = headers.get(b"authorization")
        if authorization is not None:
            scheme, _, bearer = authorization.partition(b" ")
            token = self._tokens.verify(bearer.decode("latin-1")) if scheme.lower() == b"bearer" else None
            return Principal(token=token, address=caller)
        secret = read_cookie(headers, COOKIE)
        session = self._sessions.verify(secret) if secret is not None else None
        return Principal(session=session, address=caller)

    def _not_here(self, path: str) -> Refusal:
        methods = self.needs.methods(path)
        if not methods:
            return NOT_FOUND
        allowed = ", ".join(methods)
        message = f"This path does not take that method; it takes {allowed}"
        return Refusal(405, "request.method", message, headers=((b"allow", allowed.encode()),))

    async def _pass_request(
        self,
        connection: Connection,
        route: Declared,
        hardening: Hardening,
        scope: Scope,
        receive: Receive,
        send: Send,
    ) -> None:
        started = False

        async def send_hardened(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                message["headers"] = hardening.add(message["headers"])
            await send(message)

        if scope["method"] == "HEAD":  # answered as GET is; the server leaves the body out
            scope = {**scope, "method": "GET"}
        elif scope["method"] not in SAFE:
            receive = _bounded(receive, route.most_body)
        running = self._app(scope, receive, send_hardened)
        if connection.session is None and connection.token is None:
            running = _in_time(running)
        try:
            await running
        except asyncio.CancelledError:
            _unless_revoked(connection)
            refusal = NOT_SIGNED_IN
        except _TooSlow:
            refusal = TOO_SLOW
        except Exception as error:
            refusal = unexpected(log_unexpected(error, method=scope["method"], path=route.path))
        else:
            return
        if not started:
            await _refuse(refusal, hardening, scope, send)

    async def _pass_socket(
        self, connection: Connection, hardening: Hardening, scope: Scope, receive: Receive, send: Send
    ) -> None:
        accepted = over = False

        async def receive_watched() -> Message:
            nonlocal over
            message = await receive()
            over = over or message["type"] == "websocket.disconnect"
            return message

        async def send_watched(message: Message) -> None:
            nonlocal accepted, over
            accepted = accepted or message["type"] == "websocket.accept"
            over = over or message["type"] == "websocket.close"
            await send(message)

        try:
            await self._app(scope, receive_watched, send_watched)
        except asyncio.CancelledError:
            _unless_revoked(connection)
            code, reason, refusal = SIGNED_OUT, "signed out", NOT_SIGNED_IN
        except FreeholdError as error:
            refusal = Refusal(status_of(error), error.code, error.message, error.hint)
            code, reason = 4000 + refusal.status, error.code
        except Exception as error:
            if _only_left(error):
                return
            refusal = unexpected(log_unexpected(error, path=scope["path"]))
            code, reason = BROKEN, f"error {refusal.error_id}"
        else:
            return
        if over:
            return
        if accepted:
            # One that reads nothing does not read this either; the server then just hangs up.
            with suppress(TimeoutError, OSError):
                async with asyncio.timeout(0.25):
                    await send({"type": "websocket.close", "code": code, "reason": reason})
        else:
            await _refuse(refusal, hardening, scope, send)


def _may_act(headers: Mapping[bytes, bytes], origin_here: bytes, *, acts: bool, path: str) -> bool:
    """Whether this can only come from a page of ours or from no browser at all."""
    origin = headers.get(b"origin")
    if origin is not None:
        return origin == origin_here
    if acts:
        # A browser that hides where it comes from; scripts have no cookies.
        return b"cookie" not in headers
    # Nothing of the API is for another page, not even to be asked blindly for what its timing tells.
    asked_by = headers.get(b"sec-fetch-site")
    return asked_by is None or asked_by in (b"same-origin", b"none") or not path.startswith("/v1/")


class _TooSlow(Exception):
    pass


async def _in_time(running: Awaitable[None]) -> None:
    deadline = asyncio.timeout(STRANGERS_PATIENCE)
    try:
        async with deadline:
            await running
    except TimeoutError:
        if deadline.expired():
            raise _TooSlow from None
        raise


def _lacks(need: Need) -> Refusal:
    if need == "browser":
        return Refusal(403, "identity.browser-only", "No API token may do that", "Sign in with a browser")
    hint = f"Make one that may: freehold token create NAME --scope {need}"
    return Refusal(403, "identity.wrong-scope", f"This token may not do that: it lacks {need}", hint)


def _unless_revoked(connection: Connection) -> None:
    """Within `except CancelledError`: goes on only when it was we who cancelled."""
    if not connection.revoked:
        raise
    connection.task.uncancel()


def _only_left(error: BaseException) -> bool:
    """Whether all that went wrong is that the other side closed its socket."""
    if isinstance(error, BaseExceptionGroup):
        return all(_only_left(inner) for inner in error.exceptions)
    return isinstance(error, WebSocketDisconnect)


def _bounded(receive: Receive, most: int) -> Receive:
    """Counts a body without a length, so that a chunked one cannot be endless."""
    left = most

    async def receive_counted() -> Message:
        nonlocal left
        message = await receive()
        if message["type"] == "http.request":
            left -= len(message.get("body", b""))
            if left < 0:
                raise BodyTooLarge(most)
        return message

    return receive_counted


def read_cookie(headers: Mapping[bytes, bytes], name: str) -> str | None:
    """The value of our cookie; None when it is absent or comes twice (somebody is trying to plant one)."""
    cookies = headers.get(b"cookie")
    if cookies is None:
        return None
    prefix = name.encode() + b"="
    found = [part for part in map(bytes.strip, cookies.split(b";")) if part.startswith(prefix)]
    return found[0][len(prefix) :].decode("latin-1") if len(found) == 1 else None


async def _refuse(refusal: Refusal, hardening: Hardening, scope: Scope, send: Send) -> None:
    prefix = "http.response"
    if scope["type"] == "websocket":
        if "websocket.http.response" not in scope.get("extensions", {}):
            await send({"type": "websocket.close", "code": 4000 + refusal.status, "reason": refusal.code})
            return
        prefix = "websocket.http.response"
    body = refusal.encode()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        *refusal.headers,
        *hardening.for_data,
    ]
    await send({"type": f"{prefix}.start", "status": refusal.status, "headers": headers})
    await send({"type": f"{prefix}.body", "body": body})
