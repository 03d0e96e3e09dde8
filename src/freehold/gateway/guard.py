"""The guard: wraps the whole application and refuses by default.

It knows every route's need before the application sees the request, so a mistake inside a route cannot open it.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from freehold.gateway.addresses import Addresses, single
from freehold.gateway.limits import RateLimit
from freehold.gateway.live import LiveConnections
from freehold.gateway.needs import Need, NeedTable
from freehold.gateway.refusals import Refusal
from freehold.identity.sessions import COOKIE, Session, Sessions
from freehold.identity.tokens import Token, Tokens

MOST_BODY = 8 * 1024 * 1024
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

CONTENT_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "font-src 'self'",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)

_HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"x-frame-options", b"DENY"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
)
_NO_STORE = (b"cache-control", b"no-store")

NOT_SIGNED_IN = Refusal(
    401, "identity.not-signed-in", "You are not signed in", "Open /sign-in in a browser, or send an API token"
)
WRONG_HOST = Refusal(
    421, "gateway.wrong-host", "This Freehold does not answer to that name", "Set gateway.public_url in freehold.toml"
)
WRONG_ORIGIN = Refusal(403, "gateway.wrong-origin", "This request comes from a page that is not ours")
TOO_LARGE = Refusal(413, "gateway.too-large", f"The request is larger than {MOST_BODY} bytes")


@dataclass(frozen=True)
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


class Guard:
    """ASGI middleware. Every check happens here, in this order: host, origin, rate, credentials, need, size."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        needs: NeedTable,
        addresses: Addresses,
        sessions: Sessions,
        tokens: Tokens,
        live: LiveConnections,
        anonymous_limit: RateLimit | None = None,
        owner_limit: RateLimit | None = None,
        note_refusal: Callable[[Refusal, str], None] | None = None,
    ) -> None:
        self._app = app
        self._needs = needs
        self._addresses = addresses
        self._sessions = sessions
        self._tokens = tokens
        self._live = live
        self._anonymous_limit = anonymous_limit or RateLimit(rate=20, burst=200)
        self._owner_limit = owner_limit or RateLimit(rate=2_000, burst=10_000)
        self._note_refusal = note_refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        kind: str = scope["type"]
        if kind == "lifespan":
            await self._app(scope, receive, send)
            return
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name, []).append(value)
        decision = self._decide(kind, scope, headers)
        if isinstance(decision, Refusal):
            if self._note_refusal is not None:
                self._note_refusal(decision, scope["path"])
            await _refuse(decision, kind, receive, send)
            return
        scope.setdefault("state", {})["principal"] = decision
        if kind == "websocket":
            await self._pass_socket(decision, scope, receive, send)
        else:
            await self._pass_request(decision, scope, headers, receive, send)

    def _decide(self, kind: str, scope: Scope, headers: Mapping[bytes, list[bytes]]) -> Principal | Refusal:
        host = single(headers, b"host")
        if host is None or host.lower() not in self._addresses.hosts:
            return WRONG_HOST
        client = scope.get("client")
        caller = self._addresses.caller(client[0] if client else "", single(headers, b"x-forwarded-for"))
        method = scope.get("method", "GET")
        principal = self._identify(headers, caller)
        origin = single(headers, b"origin")
        acts = kind == "websocket" or method not in SAFE
        is_script = origin is None and b"cookie" not in headers
        if acts and origin not in self._addresses.origins and not is_script:
            # A page that is not ours, or a browser that hides where it comes from. Scripts send neither.
            return WRONG_ORIGIN
        if principal.session is None and principal.token is None:
            wait = self._anonymous_limit.wait(caller)
        else:
            wait = self._owner_limit.wait(principal.who)
        if wait > 0:
            return Refusal(429, "gateway.too-many", "Too many requests", f"Wait {wait:.0f} s and try again")
        need = self._needs.find(kind, method, scope["path"])
        if principal.may(need):
            return principal
        if principal.token is not None:
            return Refusal(
                403, "identity.wrong-scope", f"This token may not do that: it lacks {need}", "freehold token create"
            )
        return NOT_SIGNED_IN

    def _identify(self, headers: Mapping[bytes, list[bytes]], caller: str) -> Principal:
        authorization = single(headers, b"authorization")
        if authorization is not None:
            scheme, _, bearer = authorization.partition(" ")
            token = self._tokens.verify(bearer) if scheme.lower() == "bearer" else None
            return Principal(token=token, address=caller)
        secret = read_cookie(headers, COOKIE)
        session = self._sessions.verify(secret) if secret is not None else None
        return Principal(session=session, address=caller)

    async def _pass_request(
        self, principal: Principal, scope: Scope, headers: Mapping[bytes, list[bytes]], receive: Receive, send: Send
    ) -> None:
        length = single(headers, b"content-length")
        if length is not None and not (length.isdigit() and int(length) <= MOST_BODY):
            await _refuse(TOO_LARGE, "http", receive, send)
            return
        is_asset = scope["path"].startswith("/assets/")
        started = False

        async def send_guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                names = {name for name, _ in message["headers"]}
                message["headers"] = [
                    *message["headers"],
                    *(header for header in _HEADERS if header[0] not in names),
                    *(() if is_asset or b"cache-control" in names else (_NO_STORE,)),
                ]
            await send(message)

        if scope["method"] not in SAFE:
            receive = _bounded(receive)
        with self._live.request(principal.session, principal.token):
            try:
                await self._app(scope, receive, send_guarded)
            except _BodyTooLarge:
                if started:
                    raise
                await _refuse(TOO_LARGE, "http", receive, send)

    async def _pass_socket(self, principal: Principal, scope: Scope, receive: Receive, send: Send) -> None:
        accepted = False

        async def send_watched(message: Message) -> None:
            nonlocal accepted
            accepted = accepted or message["type"] == "websocket.accept"
            await send(message)

        try:
            with self._live.request(principal.session, principal.token) as connection:
                await self._app(scope, receive, send_watched)
        except asyncio.CancelledError:
            if not connection.revoked:
                raise
            current = asyncio.current_task()
            if current is not None:
                current.uncancel()
            if accepted:
                await send({"type": "websocket.close", "code": 4401, "reason": "signed out"})


class _BodyTooLarge(Exception):
    pass


def _bounded(receive: Receive) -> Receive:
    """Counts a body without a length, so that a chunked one cannot be endless."""
    left = MOST_BODY

    async def receive_counted() -> Message:
        nonlocal left
        message = await receive()
        if message["type"] == "http.request":
            left -= len(message.get("body", b""))
            if left < 0:
                raise _BodyTooLarge
        return message

    return receive_counted


def read_cookie(headers: Mapping[bytes, list[bytes]], name: str) -> str | None:
    """The value of our cookie; None when it is absent or comes twice (somebody is trying to plant one)."""
    prefix = name.encode() + b"="
    found = [
        part.strip()[len(prefix) :]
        for line in headers.get(b"cookie", ())
        for part in line.split(b";")
        if part.strip().startswith(prefix)
    ]
    return found[0].decode("latin-1") if len(found) == 1 else None


async def _refuse(refusal: Refusal, kind: Literal["http", "websocket"] | str, receive: Receive, send: Send) -> None:
    if kind == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 4000 + refusal.status, "reason": refusal.code})
        return
    body = json.dumps(refusal.body()).encode()
    extra = ((b"retry-after", b"1"),) if refusal.status == 429 else ()
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(body)).encode()),
        *_HEADERS,
        _NO_STORE,
        *extra,
    ]
    await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
