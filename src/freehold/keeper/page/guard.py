"""Lets only the owner use the recovery page, at a known host name and from our own pages. Refuses everything else."""

import asyncio
import ipaddress
from collections.abc import Iterable
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Protocol

from freehold.connection_slots import keep_connection
from freehold.errors import FreeholdError
from freehold.identity.sign_ins import COOKIE_OF_0_1, RECOVERY_COOKIE, RECOVERY_NAME, recovery_url
from freehold.keeper.page.responses import error_response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from freehold.identity.sign_ins import SignIn

MAX_BODY = 16 * 1024
STRANGER_TIMEOUT = 15.0
"""Seconds in which one who has not signed in must have sent a request."""
SAFE = frozenset({"GET", "HEAD"})
# The address of every page that only the owner may see begins with this and half of the sign-in's secret. A browser
# sends a cookie to every port of a name, also to an app behind `ssh -L`; it sends an address to one port only.
KEY_PREFIX = "/~"
PROBE = "/livez"
OPEN = frozenset({("GET", PROBE), ("HEAD", PROBE), ("GET", "/sign-in"), ("POST", "/sign-in")})


class VerifySignIn(Protocol):
    def __call__(self, secret: str, *, recovery: bool = False) -> "SignIn | None": ...


@dataclass(frozen=True)
class ServedHosts:
    """The host names that the page is served at. Others are refused, against DNS rebinding."""

    port: int
    hosts: frozenset[str]
    """With pages. A browser that comes to another name of this machine is sent to `RECOVERY_NAME`."""
    local: frozenset[str] = frozenset({"localhost", "127.0.0.1", "[::1]"})

    @classmethod
    def for_address(cls, listen_on: str, port: int, public_url: str | None) -> "ServedHosts":
        hosts = {RECOVERY_NAME}
        try:
            address = ipaddress.ip_address(listen_on)
        except ValueError:
            hosts |= {listen_on.lower()} - {"localhost"}
        else:
            if not address.is_unspecified and not address.is_loopback:
                hosts.add(f"[{address}]" if address.version == 6 else str(address))
        if public_url is not None:
            from urllib.parse import urlsplit

            hosts.add((urlsplit(public_url).hostname or "localhost").lower())
        return cls(port, frozenset(hosts))

    def includes(self, host: str) -> bool:
        name, _, port = host.lower().rpartition(":")
        return name in self.hosts and port == str(self.port)

    def redirects(self, host: str) -> bool:
        name, _, port = host.lower().rpartition(":")
        return name in self.local and port == str(self.port)


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
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1"), []).append(value.decode("latin-1"))
        key, path = _split_path(scope["path"])
        base = f"{KEY_PREFIX}{key}" if key else ""

        async def send_with_headers(message: "Message") -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*(_below(base, header) for header in message["headers"]), *self._headers]
            await send(message)

        hosts = headers.get("host", [])
        if len(hosts) == 1 and self._served_hosts.redirects(hosts[0]) and path != PROBE:
            await self._send_to_own_name(scope, receive, send_with_headers)
            return
        owner = self.owner(headers, key)
        if owner is not None:
            keep_connection(scope)
        scope = {**scope, "path": path, "raw_path": path.encode(), "state": {"owner": owner}}
        refused = self._refusal(scope, headers)
        if refused is not None:
            await error_response(scope, refused)(scope, receive, send_with_headers)
        elif owner is not None:
            await self._app(scope, receive, send_with_headers)
        else:
            try:
                async with asyncio.timeout(STRANGER_TIMEOUT):
                    await self._app(scope, receive, send_with_headers)
            except TimeoutError:
                slow = FreeholdError("keeper.too-slow", f"The request took more than {STRANGER_TIMEOUT:g} s")
                await error_response(scope, slow)(scope, receive, send_with_headers)

    async def _send_to_own_name(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """From `localhost` to the name that only the recovery page has. A form is not sent again."""
        from starlette.responses import RedirectResponse

        response = RedirectResponse(f"{recovery_url(self._served_hosts.port)}/", status_code=303)
        response.delete_cookie(COOKIE_OF_0_1, secure=True, httponly=True, path="/")
        await response(scope, receive, send)

    def owner(self, headers: dict[str, list[str]], key: str) -> "SignIn | None":
        """The owner's sign-in: half of its secret is in the cookie, the other half is the key in the address."""
        jar: SimpleCookie = SimpleCookie()
        for line in headers.get("cookie", []):
            try:
                jar.load(line)
            except CookieError:
                continue
        if not key or RECOVERY_COOKIE not in jar:
            return None
        sign_in = self._verify(jar[RECOVERY_COOKIE].value + key, recovery=True)
        return sign_in if sign_in is not None and sign_in.method == "recovery" else None

    def _refusal(self, scope: "Scope", headers: dict[str, list[str]]) -> FreeholdError | None:
        method, path = scope["method"], scope["path"]
        hosts = headers.get("host", [])
        is_probe = path == PROBE and method in SAFE
        if len(hosts) != 1 or not (
            self._served_hosts.includes(hosts[0]) or (is_probe and self._served_hosts.redirects(hosts[0]))
        ):
            hint = f"Open {recovery_url(self._served_hosts.port)}"
            return FreeholdError(
                "keeper.wrong-host",
                f"The recovery page is not served at {hosts[0][:100]!r}" if hosts else "The request names no host",
                hint=hint,
            )
        if method not in SAFE:
            # A missing origin is refused as well: every browser sends it with a form.
            if headers.get("origin", []) != [f"{scope['scheme']}://{hosts[0]}"]:
                return FreeholdError(
                    "keeper.wrong-origin",
                    "This request comes from another site",
                    hint=f"Open {recovery_url(self._served_hosts.port)} and use its own buttons",
                )
            lengths = headers.get("content-length", ["0"])
            if "transfer-encoding" in headers or not (lengths[0].isdigit() and int(lengths[0]) <= MAX_BODY):
                return FreeholdError("keeper.too-large", f"A request may have at most {MAX_BODY} bytes")
        if scope["state"]["owner"] is None and (method, path) not in OPEN:
            hint = "Sign in with a code from: freehold open --keeper"
            return FreeholdError("keeper.not-signed-in", "You are not signed in", hint=hint)
        return None


def _split_path(path: str) -> tuple[str, str]:
    """The key in an address, and the path after it. Without a key it is empty."""
    if not path.startswith(KEY_PREFIX):
        return "", path
    key, slash, rest = path.removeprefix(KEY_PREFIX).partition("/")
    return key, slash + rest or "/"


def _below(base: str, header: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    """A redirect to one of the owner's pages stays below the key."""
    name, value = header
    if name == b"location" and value.startswith(b"/") and not value.startswith((KEY_PREFIX.encode(), b"/sign-in")):
        return name, base.encode() + value
    return header
