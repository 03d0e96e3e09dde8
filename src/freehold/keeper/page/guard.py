"""Lets only the owner use the recovery page, at a known host name and from our own pages. Refuses everything else."""

import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Protocol

from freehold.errors import FreeholdError
from freehold.identity.sign_ins import COOKIE, RECOVERY_COOKIE
from freehold.keeper.page.responses import error_response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from freehold.identity.sign_ins import SignIn

MAX_BODY = 16 * 1024
SAFE = frozenset({"GET", "HEAD"})
OPEN = frozenset({("GET", "/livez"), ("HEAD", "/livez"), ("GET", "/sign-in"), ("POST", "/sign-in")})


class VerifySignIn(Protocol):
    def __call__(self, secret: str, *, recovery: bool = False) -> "SignIn | None": ...


@dataclass(frozen=True)
class ServedHosts:
    """The host names that the page is served at. Others are refused, against DNS rebinding."""

    port: int
    hosts: frozenset[str]

    @classmethod
    def for_address(cls, listen_on: str, port: int, public_url: str | None) -> "ServedHosts":
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

    def includes(self, host: str) -> bool:
        name, _, port = host.lower().rpartition(":")
        return name in self.hosts and port == str(self.port)


class PageGuard:
    """Checks the host name, the origin, the size and the sign-in, in this order. Adds the same headers to every response."""

    def __init__(
        self, app: "ASGIApp", served_hosts: ServedHosts, verify: VerifySignIn, headers: Iterable[tuple[bytes, bytes]]
    ) -> None:
        self._app = app
        self._served_hosts = served_hosts
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
            await error_response(scope, refused)(scope, receive, send_with_headers)
        else:
            await self._app(scope, receive, send_with_headers)

    def owner(self, headers: dict[str, list[str]]) -> "SignIn | None":
        """The owner's sign-in: by the recovery cookie, or by the gateway's cookie, which browsers send to every port."""
        jar: SimpleCookie = SimpleCookie()
        for line in headers.get("cookie", []):
            try:
                jar.load(line)
            except CookieError:
                continue
        for name, recovery in ((RECOVERY_COOKIE, True), (COOKIE, False)):
            if name in jar:
                sign_in = self._verify(jar[name].value, recovery=recovery)
                if sign_in is not None:
                    return sign_in
        return None

    def _refusal(self, scope: "Scope", headers: dict[str, list[str]]) -> FreeholdError | None:
        method, path = scope["method"], scope["path"]
        hosts = headers.get("host", [])
        if len(hosts) != 1 or not self._served_hosts.includes(hosts[0]):
            hint = f"Open http://localhost:{self._served_hosts.port}"
            return FreeholdError(
                "keeper.wrong-host",
                f"The recovery page is not served at {hosts[0][:100]!r}" if hosts else "The request names no host",
                hint=hint,
            )
        if method not in SAFE:
            # A missing origin is refused as well: every browser sends it with a form.
            if headers.get("origin", []) != [f"{scope['scheme']}://{hosts[0]}"]:
                return FreeholdError("keeper.wrong-origin", "This request comes from another site")
            lengths = headers.get("content-length", ["0"])
            if "transfer-encoding" in headers or not (lengths[0].isdigit() and int(lengths[0]) <= MAX_BODY):
                return FreeholdError("keeper.too-large", f"A request may have at most {MAX_BODY} bytes")
        if scope["state"]["owner"] is None and (method, path) not in OPEN:
            hint = "Sign in with a code from: freehold open --keeper"
            return FreeholdError("keeper.not-signed-in", "You are not signed in", hint=hint)
        return None
