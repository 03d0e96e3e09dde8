"""Every route, method and socket of the gateway and of the keeper's page, tried by everybody who must not get in.

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
from tests.gateway.running import Running, listen
from websockets.exceptions import InvalidStatus

from freehold.gateway.limits import RateLimit
from freehold.gateway.needs import Declared, Need
from freehold.gateway.routes.pages import PAGES, STATIC
from freehold.identity import tokens
from freehold.identity.sessions import COOKIE, RECOVERY_COOKIE, Sessions
from freehold.keeper.desk import Desk
from freehold.keeper.page.guard import OPEN
from freehold.keeper.page.routes import Routes
from freehold.keeper.page.server import serve_page

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND")
UNSAFE = frozenset(METHODS) - {"GET", "HEAD", "OPTIONS"}

# Whatever a proxy, a framework or a load balancer has ever believed.
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
    """Stands where the application stands, and notes who gets through."""

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
class Door:
    """The gateway with its application taken out: only the guard is left."""

    gateway: Running
    inside: Recorder

    def routes(self) -> Iterator[tuple[Declared, str, str]]:
        """Each declared route with each of its methods, at a path that fits it."""
        for route in self.gateway.app.needs.declared:
            for method in sorted(route.methods):
                yield route, method, re.sub(r"\{[^}]+\}", "1", route.path)

    async def knock(self, route: Declared, method: str, path: str, headers: dict[str, str]) -> int:
        """The status that is answered; 101 for a socket that opens."""
        if route.kind == "http":
            return (await self.gateway.http.request(method, path, headers=headers)).status_code
        try:
            async with self.gateway.socket(headers, path):
                return 101
        except InvalidStatus as refused:
            return refused.response.status_code

    async def everyone_is_refused(self, headers: dict[str, str], status: int, *, but: tuple[Need, ...] = ()) -> None:
        """On every route, except those that need only one of `but`."""
        tried = 0
        for route, method, path in self.routes():
            if route.need not in but:
                assert await self.knock(route, method, path, headers) == status, f"{method} {path}"
                tried += 1
        assert tried
        assert self.inside.reached == []


@pytest.fixture
async def door(gateway: Running) -> AsyncIterator[Door]:
    recorder = Recorder()
    app: ASGIApp = gateway.app._app
    gateway.app._app = recorder
    gateway.app._anonymous_limit = RateLimit(rate=1e9, burst=1e9)
    yield Door(gateway, recorder)
    gateway.app._app = app  # it takes part in the shutdown


async def test_there_is_something_to_try(door: Door) -> None:
    found = {(route.kind, method, route.path) for route, method, _ in door.routes()}
    assert ("http", "POST", "/v1/tokens") in found
    assert ("websocket", "GET", "/v1/socket") in found
    assert len(found) > 30


async def test_the_owner_gets_through_everywhere(door: Door) -> None:
    """Without this, the refusals below would prove nothing."""
    headers = door.gateway.browser()
    for route, method, path in door.routes():
        assert await door.knock(route, method, path, headers) in (204, 101), f"{method} {path}"


async def test_without_credentials(door: Door) -> None:
    await door.everyone_is_refused({}, 401, but=("anyone",))


async def test_what_is_open_to_anyone_is_named_here(door: Door) -> None:
    """A route that opens to the world changes this list, and somebody has to say so.

    The control center's own files are open, too: they hold no secret.
    """
    files = {f"/{file.relative_to(STATIC)}" for file in STATIC.rglob("*")} | set(PAGES)
    assert {
        f"{method} {route.path}"
        for route, method, _ in door.routes()
        if route.need == "anyone" and route.path not in files
    } == {
        "GET /health",
        "GET /livez",
        "GET /oauth/callback",
        "GET /oauth/client-metadata.json",
        "GET /oauth/jwks.json",
        "GET /ready",
        "GET /v1/sign-in",
        "POST /v1/devices",
        "POST /v1/devices/answer/collect",
        "POST /v1/sign-in/atproto",
        "POST /v1/sign-in/link",
    }


async def test_with_a_revoked_session(door: Door) -> None:
    headers = door.gateway.browser()
    door.gateway.house.sessions.revoke_all()
    await door.everyone_is_refused(headers, 401, but=("anyone",))


async def test_with_a_revoked_token(door: Door) -> None:
    headers = door.gateway.token("admin")
    door.gateway.house.tokens.revoke("script")
    await door.everyone_is_refused(headers, 401, but=("anyone",))


@pytest.mark.parametrize("scope", get_args(tokens.Scope))
async def test_with_a_token_of_another_scope(door: Door, scope: tokens.Scope) -> None:
    headers = door.gateway.token(scope)
    allowed: tuple[Need, ...] = ("anyone", scope) if scope != "admin" else ("anyone", *get_args(tokens.Scope))
    await door.everyone_is_refused(headers, 403, but=allowed)


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:1"])
async def test_with_a_foreign_origin(door: Door, origin: str) -> None:
    await door.everyone_is_refused({**door.gateway.browser(), "origin": origin}, 403)
    await door.everyone_is_refused({**door.gateway.token("admin"), "origin": origin}, 403)


async def test_with_a_cookie_and_no_origin(door: Door) -> None:
    headers = {"cookie": door.gateway.browser()["cookie"]}
    for route, method, path in door.routes():
        if route.kind == "websocket" or method in UNSAFE:
            assert await door.knock(route, method, path, headers) == 403, f"{method} {path}"
    assert door.inside.reached == []


async def test_with_a_wrong_host(door: Door) -> None:
    for headers in (door.gateway.browser(), door.gateway.token("admin")):
        for route, method, path in door.routes():
            if route.kind == "http":
                answer = await door.gateway.http.request(method, path, headers={**headers, "host": "evil.example"})
                assert answer.status_code == 421, f"{method} {path}"
    assert door.inside.reached == []


async def test_with_spoofed_headers(door: Door) -> None:
    """They are no credential, no name and no address."""
    spoofed = {name: value.format(port=door.gateway.port) for name, value in SPOOFED.items()}
    await door.everyone_is_refused(spoofed, 401, but=("anyone",))
    for route, method, path in door.routes():
        if route.kind == "http":
            headers = {**spoofed, **door.gateway.browser(), "host": "evil.example"}
            assert (await door.gateway.http.request(method, path, headers=headers)).status_code == 421
    assert door.inside.reached == []


async def test_with_every_other_method(door: Door) -> None:
    """What a route was not made for never reaches the application, whoever asks."""
    owner = door.gateway.browser()
    for path in sorted({path for route, _, path in door.routes() if route.kind == "http"}):
        taken = set(door.gateway.app.needs.methods(path))
        for method in sorted(set(METHODS) - taken - ({"HEAD"} if "GET" in taken else set())):
            assert (await door.gateway.http.request(method, path)).status_code == 401, f"{method} {path}"
            assert (await door.gateway.http.request(method, path, headers=owner)).status_code == 405, f"{method} {path}"
    assert door.inside.reached == []


# The keeper's page


@dataclass(frozen=True)
class Page:
    """The keeper's page as it is served, over a desk that must never be reached."""

    routes: tuple[tuple[str, str], ...]
    sessions: Sessions
    port: int
    http: httpx2.AsyncClient

    def owner(self) -> dict[str, str]:
        _, secret = self.sessions.create(None, label="test", address="127.0.0.1", method="link")
        return {"cookie": f"{COOKIE}={secret}", "origin": f"http://localhost:{self.port}"}

    async def is_refused(self, method: str, path: str, headers: dict[str, str]) -> bool:
        """By the guard: refused outright, or sent to the sign-in page."""
        answer = await self.http.request(method, path, headers=headers)
        at_the_door = answer.status_code == 303 and answer.headers["location"] == "/sign-in"
        return at_the_door or answer.status_code in (401, 403, 421)


class NoDesk:
    """Whatever is asked of it is a hole in the guard."""

    def __init__(self, sessions: Sessions, home: Path) -> None:
        self.sessions = sessions
        self.plan = SimpleNamespace(keeper_host="127.0.0.1", public_url=None, home=home)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the desk was asked for {name}")


@asynccontextmanager
async def _serve(root: Path) -> AsyncIterator[Page]:
    with Sessions(root / "vault" / "identity.db") as sessions:
        desk = cast(Desk, NoDesk(sessions, root))
        table = Routes(desk).table()
        routes = tuple(
            (method, re.sub(r"\{[^}]+\}", "1", route.path)) for route in table for method in route.methods or ()
        )
        listener = listen()
        port = listener.getsockname()[1]
        async with (
            serve_page(desk, [listener]),
            httpx2.AsyncClient(base_url=f"http://localhost:{port}", trust_env=False) as http,
        ):
            yield Page(routes, sessions, port, http)


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Page]:
    async with _serve(tmp_path) as served:
        yield served


async def test_the_keeper_opens_only_its_door(page: Page) -> None:
    """Without credentials, with revoked ones, and with those that count elsewhere."""
    revoked = page.owner()
    page.sessions.revoke_all()
    _, other = page.sessions.create(None, label="", address="", method="link")
    strangers: list[dict[str, str]] = [
        {},
        revoked,
        {"authorization": "Bearer fh_anything"},
        {"cookie": f"{RECOVERY_COOKIE}=guessed"},
        {"cookie": f"freehold={other}"},
        {name: value.format(port=page.port) for name, value in SPOOFED.items()},
    ]
    assert len(page.routes) > 8
    for headers in strangers:
        for method, path in page.routes:
            if (method, path) not in OPEN:
                ours = {"origin": f"http://localhost:{page.port}", **headers}
                assert await page.is_refused(method, path, ours), f"{method} {path} {headers}"


@pytest.mark.parametrize("origin", [None, "https://evil.example", "null", "http://localhost:3000"])
async def test_the_keeper_takes_forms_only_from_its_own_page(page: Page, origin: str | None) -> None:
    headers = page.owner()
    del headers["origin"]
    for method, path in page.routes:
        if method not in ("GET", "HEAD"):
            sent = headers if origin is None else {**headers, "origin": origin}
            assert await page.is_refused(method, path, sent), f"{method} {path}"


async def test_the_keeper_answers_to_no_other_name(page: Page) -> None:
    for method, path in page.routes:
        headers = {**page.owner(), "host": "evil.example", "x-forwarded-host": f"localhost:{page.port}"}
        answer = await page.http.request(method, path, headers=headers)
        assert answer.status_code == 421, f"{method} {path}"


async def test_the_keeper_opens_no_socket(page: Page) -> None:
    upgrade = {"connection": "Upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
    for method, path in page.routes:
        if method == "GET" and (method, path) not in OPEN:
            headers = {**upgrade, "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ=="}
            assert await page.is_refused("GET", path, headers), path
