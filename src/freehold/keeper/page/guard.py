"""Who may see the keeper's page: the owner, from a page of ours, at a name of ours. Everything else is refused."""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Protocol

from freehold.errors import FreeholdError
from freehold.identity.sessions import COOKIE, RECOVERY_COOKIE
from freehold.keeper.page.answers import refusal

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from freehold.identity.sessions import Session

MAX_BODY = 16 * 1024
SAFE = frozenset({"GET", "HEAD"})
OPEN = frozenset({("GET", "/livez"), ("HEAD", "/livez"), ("GET", "/sign-in"), ("POST", "/sign-in")})


class Verify(Protocol):
    def __call__(self, secret: str, *, recovery: bool = False) -> "Session | None": ...


@dataclass(frozen=True)
class Names:
    """What we answer to, so that a foreign name pointed at our address (DNS rebinding) gets nothing."""

    port: int
    hosts: frozenset[str]

    @classmethod
    def of(cls, listen_on: str, port: int, public_url: str | None) -> "Names":
        hosts = {"localhost", "127.0.0.1", "[::1]"}
        try:
            address = ipaddress.ip_address(listen_on)
        except ValueError:
            hosts.add(listen_on.lower())
        else:
            if not address.is_unspecified:
                hosts.add(f"[{address}]" if address.version == 6 else str(address))
        if public_url is not None:
            from urllib.parse import urlsplit

            hosts.add((urlsplit(public_url).hostname or "localhost").lower())
        return cls(port, frozenset(hosts))

    def serves(self, host: str) -> bool:
        name, _, port = host.lower().rpartition(":")
        return name in self.hosts and port == str(self.port)


class Guard:
    """Checks in this order: name, origin, size, owner; and puts the same headers on every answer."""

    def __init__(self, app: "ASGIApp", names: Names, verify: Verify, headers: Iterable[tuple[bytes, bytes]]) -> None:
        self._app = app
        self._names = names
        self._verify = verify
        self._headers = list(headers)

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def send_with_headers(message: "Message") -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], *self._headers]
            await send(message)

        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
        scope["state"] = {"owner": self.owner(headers)}
        refused = self._refusal(scope, headers)
        if refused is not None:
            await refusal(scope, *refused)(scope, receive, send_with_headers)
        else:
            await self._app(scope, receive, send_with_headers)

    def owner(self, headers: dict[str, list[str]]) -> "Session | None":
        """The owner's session: the gateway's cookie, which browsers send to every port, or our own."""
        jar: SimpleCookie = SimpleCookie()
        for line in headers.get("cookie", []):
            try:
                jar.load(line)
            except CookieError:
                continue
        for name, recovery in ((RECOVERY_COOKIE, True), (COOKIE, False)):
            if name in jar:
                session = self._verify(jar[name].value, recovery=recovery)
                if session is not None:
                    return session
        return None

    def _refusal(self, scope: "Scope", headers: dict[str, list[str]]) -> tuple[int, FreeholdError] | None:
        method, path = scope["method"], scope["path"]
        hosts = headers.get("host", [])
        if len(hosts) != 1 or not self._names.serves(hosts[0]):
            hint = f"Open http://localhost:{self._names.port}"
            return 421, FreeholdError("keeper.wrong-host", "The keeper does not answer to that name", hint=hint)
        if method not in SAFE:
            # Absent is refused too: every browser sends it with a form, and nothing else has business here.
            if headers.get("origin", []) != [f"{scope['scheme']}://{hosts[0]}"]:
                return 403, FreeholdError("keeper.wrong-origin", "This request comes from a page that is not ours")
            lengths = headers.get("content-length", ["0"])
            if "transfer-encoding" in headers or not (lengths[0].isdigit() and int(lengths[0]) <= MAX_BODY):
                return 413, FreeholdError("keeper.too-large", f"A request may have at most {MAX_BODY} bytes")
        if scope["state"]["owner"] is None and (method, path) not in OPEN:
            hint = "Sign in on the page, with a code from: freehold open --keeper"
            return 401, FreeholdError("keeper.not-signed-in", "You are not signed in", hint=hint)
        return None
