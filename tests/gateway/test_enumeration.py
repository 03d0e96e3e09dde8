"""Every route, method and socket of the gateway and of the recovery page, tried by every caller that must be refused.

The list is the running application's own, so a route that is added tomorrow is tried tomorrow.
"""

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast, get_args

import httpx2
import pytest
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocket
from tests.gateway.running_gateway import RunningGateway, listen
from tests.support.condition import DEADLINE
from tests.support.signed_in import RecoverySignIn, sign_in_to_recovery
from websockets.exceptions import InvalidStatus

from freehold.gateway.rate_limit import RateLimit
from freehold.gateway.route_scope import RouteScope
from freehold.gateway.routes.pages import PAGES, STATIC
from freehold.gateway.routing import ScopedRoute
from freehold.identity import tokens
from freehold.identity.sign_ins import RECOVERY_COOKIE, SignIns, recovery_url, split_secret
from freehold.keeper.api import KeeperApi
from freehold.keeper.page.guard import OPEN
from freehold.keeper.page.restore_jobs import RestoreJobs
from freehold.keeper.page.routes import PageRoutes
from freehold.keeper.page.server import serve_page

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND")
UNSAFE = frozenset(METHODS) - {"GET", "HEAD", "OPTIONS"}

# Headers that proxies, frameworks and load balancers have trusted.
SPOOFED = {
    "x-forwarded-for": "127.0.0.1",
    "x-forwarded-host": "localhost:{port}",
    "x-forwarded-proto": "https",
    "x-forwarded-user": "owner",
    "x-real-ip": "127.0.0.1",
    "x-original-url": "/livez",
    "x-rewrite-url": "/livez",
    "x-http-method-override": "GET",
    "forwarded": "for=127.0.0.1;host=localhost:{port};proto=https",
    "x-remote-user": "owner",
}


@dataclass
class Recorder:
    """Replaces the application, and counts the requests that pass the guard."""

    reached: list[str] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.reached.append(scope["path"])
        if scope["type"] == "websocket":
            socket = WebSocket(scope, receive, send)
            await socket.accept()
            await socket.close()
        else:
            await Response(status_code=204)(scope, receive, send)


@dataclass(frozen=True)
class GuardWithoutApp:
    """The gateway without its application: only the guard."""

    gateway: RunningGateway
    inside: Recorder

    def routes(self) -> Iterator[tuple[ScopedRoute, str, str]]:
        """Each declared route with each of its methods, at a path that fits it."""
        for route in self.gateway.app.routes.routes:
            for method in sorted(route.methods):
                yield route, method, re.sub(r"\{[^}]+\}", "1", route.path)

    async def knock(self, route: ScopedRoute, method: str, path: str, headers: dict[str, str]) -> int:
        """The status that is answered; 101 for a socket that opens."""
        if route.kind == "http":
            return (await self.gateway.http.request(method, path, headers=headers)).status_code
        try:
            async with self.gateway.socket(headers, path):
                return 101
        except InvalidStatus as refused:
            return refused.response.status_code

    async def everyone_is_refused(
        self, headers: dict[str, str], status: int, *, but: tuple[RouteScope, ...] = ()
    ) -> None:
        """On every route, except those that need only one of `but`."""
        tried = 0
        for route, method, path in self.routes():
            if route.scope not in but:
                assert await self.knock(route, method, path, headers) == status, f"{method} {path}"
                tried += 1
        assert tried
        assert self.inside.reached == []


@pytest.fixture
async def door(gateway: RunningGateway) -> AsyncIterator[GuardWithoutApp]:
    recorder = Recorder()
    app: ASGIApp = gateway.app._app
    gateway.app._app = recorder
    gateway.app._anonymous_limit = RateLimit(rate=1e9, burst=1e9)
    yield GuardWithoutApp(gateway, recorder)
    gateway.app._app = app  # it takes part in the shutdown


async def test_there_are_routes_to_try(door: GuardWithoutApp) -> None:
    found = {(route.kind, method, route.path) for route, method, _ in door.routes()}
    assert ("http", "POST", "/v1/tokens") in found
    assert ("websocket", "GET", "/v1/socket") in found
    assert len(found) > 30


async def test_the_owner_passes_the_guard_everywhere(door: GuardWithoutApp) -> None:
    """Without this, the refusals below would prove nothing."""
    headers = door.gateway.browser()
    for route, method, path in door.routes():
        assert await door.knock(route, method, path, headers) in (204, 101), f"{method} {path}"


async def test_allow_names_exactly_the_methods_that_are_accepted(door: GuardWithoutApp) -> None:
    """Also where a pattern would fit the address: `GET /v1/history/undo` is not the entry `undo`."""
    headers = door.gateway.browser()
    paths = {path for route, _, path in door.routes() if route.kind == "http"}
    assert {"/v1/history/undo", "/v1/approvals/policy", "/v1/history/1"} <= paths
    for path in sorted(paths):
        refused = await door.gateway.http.request("PROPFIND", path, headers=headers)
        assert refused.status_code == 405
        allowed = set(refused.headers["allow"].split(", "))
        for method in METHODS:
            answer = await door.gateway.http.request(method, path, headers=headers)
            assert (answer.status_code == 204) == (method in allowed), f"{method} {path}: {answer.status_code}"
            if method not in allowed:
                assert set(answer.headers["allow"].split(", ")) == allowed


async def test_no_route_opens_without_credentials(door: GuardWithoutApp) -> None:
    await door.everyone_is_refused({}, 401, but=("anyone",))


async def test_the_routes_that_are_open_to_anyone_are_listed_here(door: GuardWithoutApp) -> None:
    """A route that opens to the world changes this list, and somebody has to say so.

    The control center's own files are open, too: they hold no secret.
    """
    files = {f"/{file.relative_to(STATIC)}" for file in STATIC.rglob("*")} | set(PAGES) | {"/docs/"}
    assert {
        f"{method} {route.path}"
        for route, method, _ in door.routes()
        if route.scope == "anyone" and route.path not in files
    } == {
        "GET /health",
        "GET /livez",
        "GET /oauth/callback",
        "GET /oauth/client-metadata.json",
        "GET /oauth/jwks.json",
        "GET /oauth/mcp-callback",
        "GET /oauth/record/callback",
        "GET /oauth/record/client-metadata.json",
        "GET /ready",
        "GET /v1/preview/certificate",
        "GET /relay",
        "GET /v1/sign-in",
        "POST /v1/devices",
        "POST /v1/devices/answer/collect",
        "POST /v1/mesh/introduction",
        "POST /v1/mesh/pair",
        "POST /v1/hooks/{name}",
        "POST /v1/sign-in/atproto",
        "POST /v1/sign-in/link",
    }


async def test_no_route_opens_with_a_revoked_sign_in(door: GuardWithoutApp) -> None:
    headers = door.gateway.browser()
    door.gateway.services.sign_ins.revoke_all()
    await door.everyone_is_refused(headers, 401, but=("anyone",))


async def test_no_route_opens_with_a_revoked_token(door: GuardWithoutApp) -> None:
    headers = door.gateway.token("admin")
    door.gateway.services.tokens.revoke("script")
    await door.everyone_is_refused(headers, 401, but=("anyone",))


@pytest.mark.parametrize("scope", get_args(tokens.Scope))
async def test_no_route_opens_with_a_token_of_another_scope(door: GuardWithoutApp, scope: tokens.Scope) -> None:
    headers = door.gateway.token(scope)
    allowed: tuple[RouteScope, ...] = ("anyone", scope) if scope != "admin" else ("anyone", *get_args(tokens.Scope))
    await door.everyone_is_refused(headers, 403, but=allowed)


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:1"])
async def test_no_route_opens_from_a_foreign_origin(door: GuardWithoutApp, origin: str) -> None:
    await door.everyone_is_refused({**door.gateway.browser(), "origin": origin}, 403)
    token = {**door.gateway.token("admin"), "host": door.gateway.host}
    await door.everyone_is_refused({**token, "origin": origin}, 403)


async def test_no_route_acts_with_a_key_or_a_cookie_and_no_origin(door: GuardWithoutApp) -> None:
    browser = door.gateway.browser()
    del browser["origin"]
    for headers in (browser, {"host": browser["host"], "cookie": "any=1"}):
        for route, method, path in door.routes():
            if route.kind == "websocket" or method in UNSAFE:
                assert await door.knock(route, method, path, headers) == 403, f"{method} {path}"
    assert door.inside.reached == []


async def test_no_route_opens_with_a_key_at_a_name_that_other_programs_share(door: GuardWithoutApp) -> None:
    for name in ("localhost", "127.0.0.1"):
        here = {"host": f"{name}:{door.gateway.port}", "origin": f"http://{name}:{door.gateway.port}"}
        for route, method, path in door.routes():
            if route.scope != "anyone":
                answer = await door.knock(route, method, path, {**door.gateway.browser(), **here})
                assert answer == 401, f"{method} {path}"
    assert door.inside.reached == []


async def test_no_route_opens_at_a_wrong_host(door: GuardWithoutApp) -> None:
    for headers in (door.gateway.browser(), door.gateway.token("admin")):
        for route, method, path in door.routes():
            if route.kind == "http":
                answer = await door.gateway.http.request(method, path, headers={**headers, "host": "evil.example"})
                assert answer.status_code == 421, f"{method} {path}"
    assert door.inside.reached == []


async def test_no_route_opens_with_spoofed_headers(door: GuardWithoutApp) -> None:
    """They count as no credential, no host name and no address."""
    spoofed = {name: value.format(port=door.gateway.port) for name, value in SPOOFED.items()}
    await door.everyone_is_refused(spoofed, 401, but=("anyone",))
    for route, method, path in door.routes():
        if route.kind == "http":
            headers = {**spoofed, **door.gateway.browser(), "host": "evil.example"}
            assert (await door.gateway.http.request(method, path, headers=headers)).status_code == 421
    assert door.inside.reached == []


async def test_no_route_accepts_another_method(door: GuardWithoutApp) -> None:
    """A method that a route does not accept never reaches the application."""
    owner = door.gateway.browser()
    for path in sorted({path for route, _, path in door.routes() if route.kind == "http"}):
        taken = set(door.gateway.app.routes.list_methods(path))
        for method in sorted(set(METHODS) - taken - ({"HEAD"} if "GET" in taken else set())):
            assert (await door.gateway.http.request(method, path)).status_code == 401, f"{method} {path}"
            assert (await door.gateway.http.request(method, path, headers=owner)).status_code == 405, f"{method} {path}"
    assert door.inside.reached == []


# The keeper's page


@dataclass(frozen=True)
class Page:
    """The recovery page as it is served, with an API object that must not be reached."""

    routes: tuple[tuple[str, str], ...]
    sign_ins: SignIns
    port: int
    http: httpx2.AsyncClient

    def owner(self) -> RecoverySignIn:
        return sign_in_to_recovery(self.sign_ins, self.port)

    @property
    def stranger(self) -> dict[str, str]:
        """Of a browser at the right name that has not signed in."""
        origin = recovery_url(self.port)
        return {"origin": origin, "host": origin.removeprefix("http://")}

    async def is_refused(self, method: str, path: str, headers: dict[str, str]) -> bool:
        """By the guard: refused outright, or sent to the sign-in page."""
        answer = await self.http.request(method, path, headers=headers)
        is_sent_to_sign_in = answer.status_code == 303 and answer.headers["location"] == "/sign-in"
        return is_sent_to_sign_in or answer.status_code in (401, 403, 421)


class UnusedKeeperApi:
    """A request that reaches it has passed the guard."""

    def __init__(self, sign_ins: SignIns, home: Path) -> None:
        self.sign_ins = sign_ins
        self.plan = SimpleNamespace(keeper_host="127.0.0.1", public_url=None, home=home)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the guard let a request through to {name}")


@asynccontextmanager
async def _serve(root: Path) -> AsyncIterator[Page]:
    with SignIns(root / "vault" / "identity.db") as sign_ins:
        api = cast(KeeperApi, UnusedKeeperApi(sign_ins, root))
        table = PageRoutes(api, cast(RestoreJobs, None)).table()
        routes = tuple(
            (method, re.sub(r"\{[^}]+\}", "1", route.path)) for route in table for method in route.methods or ()
        )
        listener = listen()
        port = listener.getsockname()[1]
        async with (
            serve_page(api, [listener]),
            httpx2.AsyncClient(base_url=f"http://localhost:{port}", trust_env=False, timeout=DEADLINE) as http,
        ):
            yield Page(routes, sign_ins, port, http)


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Page]:
    async with _serve(tmp_path) as served:
        yield served


async def test_the_keeper_opens_only_its_sign_in_page(page: Page) -> None:
    """Without credentials, with revoked ones, and with those of other programs."""
    revoked = page.owner()
    page.sign_ins.revoke_all()
    _, link = page.sign_ins.create(None, label="", address="", method="link")
    other_cookie, other_key = split_secret(link)
    owner = page.owner()
    strangers: list[tuple[str, dict[str, str]]] = [
        ("", {}),
        (revoked.base, revoked.headers),
        ("", owner.headers),  # the cookie alone, as an app behind a forward gets it
        (owner.base, {}),  # the address alone, as it is in the browser's history
        (owner.base, {"cookie": f"{RECOVERY_COOKIE}=planted"}),
        ("", {"cookie": f"{RECOVERY_COOKIE}={link}"}),
        (f"/~{other_key}", {"cookie": f"{RECOVERY_COOKIE}={other_cookie}"}),  # of the control center
        ("", {"authorization": f"Sign-In {link}"}),
        ("", {"authorization": "Bearer fh_anything"}),
        ("", {"cookie": f"freehold={link}"}),
        ("", {name: value.format(port=page.port) for name, value in SPOOFED.items()}),
    ]
    assert len(page.routes) > 8
    for base, headers in strangers:
        for method, path in page.routes:
            if (method, path) not in OPEN:
                assert await page.is_refused(method, base + path, {**page.stranger, **headers}), (
                    f"{method} {path} {headers}"
                )
    # With both halves the guard is open: the request reaches the API object.
    assert (await page.http.get(f"{owner.base}/v1/status", headers=owner.headers)).status_code == 500


@pytest.mark.parametrize("origin", [None, "https://evil.example", "null", "http://localhost:3000"])
async def test_the_keeper_takes_forms_only_from_its_own_page(page: Page, origin: str | None) -> None:
    owner = page.owner()
    del owner.headers["origin"]
    for method, path in page.routes:
        if method not in ("GET", "HEAD"):
            sent = owner.headers if origin is None else {**owner.headers, "origin": origin}
            assert await page.is_refused(method, owner.base + path, sent), f"{method} {path}"


async def test_the_keeper_serves_no_other_host_name(page: Page) -> None:
    owner = page.owner()
    for method, path in page.routes:
        headers = {**owner.headers, "host": "evil.example", "x-forwarded-host": f"localhost:{page.port}"}
        answer = await page.http.request(method, owner.base + path, headers=headers)
        assert answer.status_code == 421, f"{method} {path}"
        for name in ("localhost", "127.0.0.1", "[::1]"):
            if path == "/livez":
                continue
            headers = {**owner.headers, "host": f"{name}:{page.port}"}
            answer = await page.http.request(method, owner.base + path, headers=headers)
            assert (answer.status_code, answer.headers["location"]) == (303, f"http://recovery.localhost:{page.port}/")


async def test_the_keeper_opens_no_socket(page: Page) -> None:
    upgrade = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
    for method, path in page.routes:
        if method == "GET" and (method, path) not in OPEN:
            headers = {**page.stranger, **upgrade, "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="}
            assert await page.is_refused("GET", path, headers), path
