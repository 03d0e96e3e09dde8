"""Every preview: decides by Host, before anything of the control center is reached, and shares no route with it."""

import asyncio
import logging
from contextlib import suppress
from types import SimpleNamespace
from typing import Final

from starlette.types import Message, Receive, Scope, Send

from freehold.computer.tunnel import Tunnel
from freehold.errors import FreeholdError
from freehold.gateway.addresses import Addresses, crowd_of, read_headers
from freehold.gateway.dispatch import DECIDED
from freehold.gateway.house import House
from freehold.gateway.limits import RateLimit
from freehold.gateway.live import Connection
from freehold.gateway.preview.hosts import Place, PreviewHosts
from freehold.gateway.preview.pages import show
from freehold.gateway.preview.passes import Holder, Passes, set_pass
from freehold.gateway.preview.requests import METHODS, Unspeakable, forward, head_of
from freehold.gateway.preview.sockets import Refused, relay
from freehold.gateway.preview.translation import may_ask
from freehold.observe.logs import log_unexpected

OURS = "/.freehold/"
ENTER = f"{OURS}enter/"
MAX_AT_ONCE = 256
"""Requests and sockets of all previews together: fewer than the gateway has room for, so that it stays reachable."""
MAX_SOCKETS = 64
"""Of those, sockets: each may hold a message either way."""
TO_CONNECT = 10.0
AGAIN = 2
SIGNED_OUT = 4401
LAST_WORD = 0.25

MEASURED_AS: Final = SimpleNamespace(path="preview")

log = logging.getLogger("freehold.gateway.preview")


class Previews:
    """An ASGI application. `find` says which Hosts are its own."""

    def __init__(self, house: House, hosts: PreviewHosts, passes: Passes, addresses: Addresses) -> None:
        self._house = house
        self._hosts = hosts
        self._passes = passes
        self._addresses = addresses
        self._strangers = RateLimit(rate=20, burst=200)
        self._open = {"http": 0, "websocket": 0}

    def find(self, host: bytes) -> Place | None:
        return self._hosts.find(host)

    def framed_at(self, host: str) -> str | None:
        family = self._hosts.seen_from(host)
        return family.source if family is not None else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[DECIDED] = MEASURED_AS
        scope["headers"] = [(name.lower(), value) for name, value in scope["headers"]]
        headers = read_headers(scope["headers"])
        place = self._hosts.find(headers.get(b"host", b""))
        assert place is not None  # the guard has looked
        if self._is_plain(place, scope, headers):
            await show(scope, send, 403, "This preview is reached by https only", "Open the same address with https.")
            return
        socket = scope["type"] == "websocket"
        path: str = scope["path"]
        if not socket and path.startswith(OURS):
            await self._enter(place, scope, send)
            return
        holder = self._passes.holder(headers.get(b"cookie", b""), place)
        if holder is None:
            await self._turn_away(place, scope, headers, send)
        elif not may_ask(headers, place, socket=socket):
            await show(scope, send, 403, "This comes from a page elsewhere", "A preview answers only to its own pages.")
        elif b"service-worker" in headers:
            # It would outlive the files it came from, undo included, and see the next address that is handed over.
            await show(scope, send, 403, "Previews have no service workers", "")
        elif not socket and scope["method"] not in METHODS:
            await show(scope, send, 405, "That method is not passed on", "An app is asked by the usual methods.")
        elif sum(self._open.values()) >= MAX_AT_ONCE or (socket and self._open["websocket"] >= MAX_SOCKETS):
            words = f"All previews share {MAX_AT_ONCE} requests, of which {MAX_SOCKETS} may be sockets."
            await show(scope, send, 503, "Too many at once", words, again=AGAIN)
        else:
            self._open[scope["type"]] += 1
            try:
                await self._pass_on(holder, place, scope, receive, send)
            finally:
                self._open[scope["type"]] -= 1

    def _is_plain(self, place: Place, scope: Scope, headers: dict[bytes, bytes]) -> bool:
        """Whether a proxy of ours says that it was asked without the https that this preview has."""
        client = scope.get("client")
        said = headers.get(b"x-forwarded-proto")
        needs_https = place.family.scheme == "https"
        return needs_https and said not in (None, b"https") and self._addresses.is_proxy(client[0] if client else "")

    async def _enter(self, place: Place, scope: Scope, send: Send) -> None:
        """Exchange a token for a pass. Nothing below our path ever reaches the app."""
        token = scope["path"].removeprefix(ENTER) if scope["path"].startswith(ENTER) else ""
        redeemed = self._passes.redeem(token, place) if scope["method"] == "GET" else None
        if redeemed is None:
            words = "Open the preview from the control center again: each address works once, within half a minute."
            await show(scope, send, 403, "This address has been used", words, framers=place.family.framers)
            return
        value, path = redeemed
        headers = [
            (b"location", path.encode("ascii")),
            (b"set-cookie", set_pass(value).encode("ascii")),
            (b"referrer-policy", b"no-referrer"),
            (b"cache-control", b"no-store"),
            (b"content-length", b"0"),
        ]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    async def _turn_away(self, place: Place, scope: Scope, headers: dict[bytes, bytes], send: Send) -> None:
        client = scope.get("client")
        caller = self._addresses.caller(
            client[0] if client else "", headers.get(b"x-forwarded-for", b"").decode("latin-1")
        )
        wait = self._strangers.wait(crowd_of(caller))
        if wait > 0:
            await show(scope, send, 429, "Too many requests", "Wait a moment.", again=max(1, round(wait)))
            return
        words = "Open it from the control center's preview page; an open preview ends when you sign out."
        await show(scope, send, 401, "Only the owner sees this", words, framers=place.family.framers)

    async def _pass_on(self, holder: Holder, place: Place, scope: Scope, receive: Receive, send: Send) -> None:
        kind = scope["type"]
        begun = over = False

        async def send_noted(message: Message) -> None:
            nonlocal begun, over
            begun = True
            over = over or message["type"] == "websocket.close"
            await send(message)

        connection = self._house.live.open(kind, holder.session, holder.token)
        try:
            await self._reach(place, scope, receive, send_noted)
        except asyncio.CancelledError:
            _unless_revoked(connection)
            if not begun:
                await self._tell(place, scope, send, 401, "You have signed out", "Sign in and open it again.")
            elif kind == "websocket" and not over:
                with suppress(TimeoutError, OSError):
                    async with asyncio.timeout(LAST_WORD):
                        await send({"type": "websocket.close", "code": SIGNED_OUT, "reason": "signed out"})
        except Unspeakable:
            await self._tell(place, scope, send, 400, "This cannot be asked", "The address has odd characters.")
        except Refused as refused:
            status = refused.status if 400 <= refused.status < 600 else 502
            await self._tell(place, scope, send, status, "The app takes no socket here", "")
        except FreeholdError as error:
            if not begun:
                await self._explain(place, scope, send, error)
        except Exception as error:
            error_id = log_unexpected(error, "a preview failed")
            if not begun:
                await self._tell(place, scope, send, 500, "Something went wrong inside Freehold", f"Error {error_id}.")
        finally:
            self._house.live.close(connection)

    async def _reach(self, place: Place, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            async with await self._connect(place.port) as tunnel:
                await relay(tunnel, place, scope, receive, send)
            return
        head = head_of(scope, place)
        async with await self._connect(place.port) as tunnel:
            await forward(tunnel, head, place, scope, receive, send)

    async def _connect(self, port: int) -> Tunnel:
        try:
            async with asyncio.timeout(TO_CONNECT):
                return await self._house.sealed.computer.forward(port)
        except TimeoutError:
            raise FreeholdError("preview.no-answer", "Whatever listens there takes no connection") from None

    async def _explain(self, place: Place, scope: Scope, send: Send, error: FreeholdError) -> None:
        match error.code:
            case "computer.no-listener":
                title, words = f"Nothing listens on port {place.port} yet", "This page looks again by itself."
                services = self._house.manifest.computer.services.items()
                for name in (name for name, service in services if service.port == place.port):
                    words = f"freehold logs service-{name} shows what its program says. {words}"
            case "computer.not-connected" | "computer.ended" | "computer.lost":
                title, words = "The computer is away", "It is being restarted; this page looks again by itself."
            case "preview.no-answer":
                title, words = f"Port {place.port} does not answer", "This page looks again by itself."
            case _:
                log.info("an app's answer was refused", extra={"port": place.port, "error": error.message})
                title, words = f"What answers on port {place.port} does not speak HTTP", f"{error.message}."
                await self._tell(place, scope, send, 502, title, words)
                return
        await self._tell(place, scope, send, 503, title, words, again=AGAIN)

    async def _tell(
        self, place: Place, scope: Scope, send: Send, status: int, title: str, words: str, again: int | None = None
    ) -> None:
        await show(scope, send, status, title, words, framers=place.family.framers, again=again)


def _unless_revoked(connection: Connection) -> None:
    """Within `except CancelledError`: goes on only when it was we who cancelled."""
    if not connection.revoked:
        raise
    connection.task.uncancel()
