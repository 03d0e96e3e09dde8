"""The guard, at a gateway that really listens: what is not allowed is tried, and refused."""

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator, Callable

import pytest
from fastapi import FastAPI
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route
from tests.gateway.running import Running
from websockets.exceptions import InvalidStatus

from freehold.errors import FreeholdError
from freehold.gateway.addresses import crowd_of, origin_of, read_headers, serve_at
from freehold.gateway.app import describe_app
from freehold.gateway.guard import read_cookie
from freehold.gateway.hardening import Hardening
from freehold.gateway.limits import RateLimit
from freehold.gateway.needs import needs, read_needs
from freehold.gateway.routes.sign_in import way_of
from freehold.identity.sessions import COOKIE


async def raw(gateway: Running, request: bytes) -> bytes:
    """Bytes in, bytes out: for what no client library would send."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(request)
    async with asyncio.timeout(10):
        answer = await reader.read(65536)
    writer.close()
    await writer.wait_closed()
    return answer


async def until(seen: Callable[[], bool]) -> None:
    """For what nobody announces."""
    while not seen():  # noqa: ASYNC110
        await asyncio.sleep(0.005)


async def test_a_trailing_newline_does_not_lower_what_a_route_needs(gateway: Running) -> None:
    """The framework's patterns match a path with %0A after it; the guard must not take that for an unknown path."""
    headers = {**gateway.token("read"), "host": gateway.host}
    body = b'{"name": "worse", "scopes": ["admin"]}'
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()
    start = b"POST /v1/tokens%0A HTTP/1.1\r\ncontent-type: application/json\r\n"
    answer = await raw(gateway, start + lines + b"content-length: %d\r\n\r\n" % len(body) + body)
    assert b"404" in answer.split(b"\r\n")[0]
    assert [token.name for token in gateway.house.tokens.list()] == ["script"]


@pytest.mark.parametrize("host", ["evil.example", "localhost", "localhost:1", "", "127.0.0.1.nip.example:{port}"])
async def test_a_foreign_name_gets_nothing(gateway: Running, host: str) -> None:
    """A name pointed at our address (DNS rebinding), and a browser's cookie with it."""
    wanted = host.format(port=gateway.port)
    answer = await gateway.http.get("/v1/me", headers={**gateway.browser(), "host": wanted})
    assert (answer.status_code, answer.json()["error"]["code"]) == (421, "gateway.wrong-host")


async def test_two_host_headers_get_nothing(gateway: Running) -> None:
    line = f"host: {gateway.host}\r\n".encode()
    answer = await raw(gateway, b"GET /livez HTTP/1.1\r\n" + line + line + b"\r\n")
    assert b"421" in answer.split(b"\r\n")[0]


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost:5173", "http://127.0.0.1:{port}", ""]
)
async def test_a_page_that_is_not_ours_cannot_act(gateway: Running, origin: str) -> None:
    """Not even one of our own other names: each name may act only on itself."""
    headers = {**gateway.browser(), "origin": origin.format(port=gateway.port)}
    answer = await gateway.http.post("/v1/sign-out", headers=headers, json={})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "gateway.wrong-origin")
    with pytest.raises(InvalidStatus) as refused:
        async with gateway.socket(headers):
            pass
    assert refused.value.response.status_code == 403
    assert json.loads(refused.value.response.body or b"")["error"]["code"] == "gateway.wrong-origin"


async def test_a_cookie_without_an_origin_cannot_act(gateway: Running) -> None:
    headers = {"cookie": gateway.browser()["cookie"]}
    answer = await gateway.http.post("/v1/sign-out", headers=headers, json={})
    assert answer.status_code == 403
    with pytest.raises(InvalidStatus):
        async with gateway.socket(headers):
            pass


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_another_page_cannot_even_ask_blindly(gateway: Running, site: str) -> None:
    headers = {"cookie": gateway.browser()["cookie"], "sec-fetch-site": site}
    assert (await gateway.http.get("/v1/timeline", headers=headers)).status_code == 403
    assert (await gateway.http.get("/", headers=headers)).status_code in (200, 503)  # links to us work


async def test_a_planted_second_cookie_signs_nobody_in(gateway: Running) -> None:
    headers = gateway.browser()
    headers["cookie"] += f"; {COOKIE}=planted"
    assert (await gateway.http.get("/v1/me", headers=headers)).status_code == 401


def test_a_cookie_is_read_only_under_its_whole_name() -> None:
    assert read_cookie({b"cookie": b"a=1; __Host-freehold=x"}, COOKIE) == "x"
    assert read_cookie({b"cookie": b"not__Host-freehold=x; __Host-freehold-recovery=y"}, COOKIE) is None
    twice = read_headers([(b"cookie", b"__Host-freehold=x"), (b"cookie", b"__Host-freehold=y")])
    assert read_cookie(twice, COOKIE) is None


def test_what_must_not_come_twice_is_worth_nothing_when_it_does() -> None:
    headers = read_headers(
        [(b"origin", b"a"), (b"origin", b"a"), (b"x-forwarded-for", b"1"), (b"x-forwarded-for", b"2")]
    )
    assert headers == {b"origin": b"", b"x-forwarded-for": b"1, 2"}


async def test_a_wrong_token_is_not_saved_by_a_good_cookie(gateway: Running) -> None:
    headers = {**gateway.browser(), "authorization": "Bearer fh_wrong"}
    assert (await gateway.http.get("/v1/me", headers=headers)).status_code == 401


async def test_a_token_in_the_address_counts_for_nothing(gateway: Running) -> None:
    secret = gateway.token("admin")["authorization"].removeprefix("Bearer ")
    for name in ("token", "access_token", "authorization"):
        assert (await gateway.http.get("/v1/me", params={name: secret})).status_code == 401


async def test_every_answer_is_hardened(gateway: Running) -> None:
    refused = {"host": "evil.example"}
    for path, headers in (("/livez", {}), ("/v1/me", {}), ("/nothing", {}), ("/livez", refused), ("/", {})):
        answer = await gateway.http.get(path, headers=headers)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in answer.headers
        assert "strict-transport-security" not in answer.headers
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"  # of the page
    assert answer.headers["x-frame-options"] == "DENY"


def test_an_answer_may_be_stricter_and_https_is_for_good() -> None:
    said = Hardening(https=True).add([(b"content-security-policy", b"sandbox"), (b"content-type", b"text/html")])
    assert dict(said)[b"content-security-policy"] == b"sandbox"
    assert len([name for name, _ in said if name == b"content-security-policy"]) == 1
    assert dict(said)[b"strict-transport-security"].startswith(b"max-age=")


async def test_head_is_answered_as_get_without_the_body(gateway: Running) -> None:
    answer = await gateway.http.head("/livez")
    assert (answer.status_code, answer.content) == (200, b"")
    assert int(answer.headers["content-length"]) > 0
    assert (await gateway.http.head("/v1/me")).status_code == 401


async def test_an_unknown_path_tells_strangers_nothing(gateway: Running) -> None:
    assert (await gateway.http.get("/v1/nothing")).status_code == 401
    token = gateway.token("read")
    assert (await gateway.http.get("/v1/nothing", headers=token)).status_code == 404
    wrong = await gateway.http.put("/v1/me", headers=token)
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "DELETE, GET")


async def test_too_large_a_body_is_refused_with_and_without_its_length(gateway: Running) -> None:
    headers = {**gateway.browser(), "content-type": "application/json"}
    told = await gateway.http.post("/v1/tokens", headers=headers, content=b" " * (8 * 1024 * 1024 + 1))
    assert (told.status_code, told.json()["error"]["code"]) == (413, "gateway.too-large")

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(200):
            yield b" " * 65536

    untold = await gateway.http.post("/v1/tokens", headers=headers, content=endless())
    assert (untold.status_code, untold.json()["error"]["code"]) == (413, "gateway.too-large")


async def test_strangers_are_slowed_down_and_told_for_how_long(gateway: Running) -> None:
    gateway.app._anonymous_limit = RateLimit(rate=0.1, burst=3)
    answers = [await gateway.http.get("/livez") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert int(answers[-1].headers["retry-after"]) in range(1, 11)
    assert (await gateway.http.get("/v1/me", headers=gateway.token("read"))).status_code == 200  # the owner is not


async def test_a_stranger_cannot_keep_a_request_open(gateway: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freehold.gateway.guard.STRANGERS_PATIENCE", 0.05)
    start = b"POST /v1/devices HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 100\r\n"
    answer = await raw(gateway, start + f"host: {gateway.host}\r\n\r\n".encode())
    assert b"408" in answer.split(b"\r\n")[0]


async def test_sign_in_is_throttled_and_a_forwarded_header_does_not_help(gateway: Running) -> None:
    async def attempt(number: int) -> int:
        headers = {"x-forwarded-for": f"203.0.113.{number}", "forwarded": f"for=203.0.113.{number}"}
        answer = await gateway.http.post("/v1/sign-in/link", json={"token": "x" * 43}, headers=headers)
        return answer.status_code

    statuses = [await attempt(number) for number in range(25)]
    assert statuses[:20] == [403] * 20
    assert statuses[20:] == [429] * 5


def test_one_who_is_refused_takes_nothing_from_the_others() -> None:
    """Throttling one address must not be a way to shut the owner out."""
    from freehold.gateway.routes.sign_in import FrontDoor

    door = FrontDoor.__new__(FrontDoor)
    now = [0.0]
    door._per_address = RateLimit(rate=1 / 6, burst=20, clock=lambda: now[0])
    door._in_all = RateLimit(rate=1, burst=60, clock=lambda: now[0])
    refused = 0
    for _ in range(500):
        try:
            door.throttle("203.0.113.9")
        except Exception:
            refused += 1
    assert refused == 480
    door.throttle("198.51.100.1")


def test_a_limit_is_shared_by_whoever_shares_a_network() -> None:
    assert crowd_of("2001:db8::1") == crowd_of("2001:db8::ffff") != crowd_of("2001:db8:0:1::1")
    assert crowd_of("::ffff:192.0.2.1") == "192.0.2.1"
    assert crowd_of("192.0.2.1") != crowd_of("192.0.2.2")
    assert crowd_of("not an address") == "not an address"


def test_forwarded_headers_are_believed_only_of_our_proxies() -> None:
    here = serve_at(port=3000, public_url="https://Agent.example.com:443", trusted_proxies=("10.0.0.0/24",))
    assert here.origins["agent.example.com"] == "https://agent.example.com"
    assert here.caller("203.0.113.5", "1.2.3.4") == "203.0.113.5"
    assert here.caller("10.0.0.1", "6.6.6.6, 203.0.113.7, 10.0.0.2") == "203.0.113.7"
    assert here.caller("10.0.0.1", "garbage") == "10.0.0.1"
    assert here.caller("10.0.0.1", "") == "10.0.0.1"
    assert here.is_plain("agent.example.com", "10.0.0.1", b"http")
    assert here.is_plain("agent.example.com", "10.0.0.1", b"")
    assert not here.is_plain("agent.example.com", "10.0.0.1", b"https")
    assert not here.is_plain("agent.example.com", "203.0.113.5", b"http")
    assert not here.is_plain("localhost:3000", "10.0.0.1", b"http")


def test_an_origin_is_spelled_as_browsers_spell_it() -> None:
    assert origin_of("http://localhost:80") == "http://localhost"
    assert origin_of("HTTPS://Agent.Example.com/") == "https://agent.example.com"
    assert origin_of("http://[::1]:3000") == "http://[::1]:3000"


# What a route can do wrong


def test_a_route_that_declares_nothing_stops_the_start() -> None:
    app = describe_app()

    @app.get("/silent")
    async def silent() -> None: ...

    with pytest.raises(RuntimeError, match="/silent"):
        read_needs(app.routes)


def test_a_mount_stops_the_start() -> None:
    app = describe_app()
    app.mount("/inner", FastAPI())
    with pytest.raises(TypeError, match="/inner"):
        read_needs(app.routes)


def test_a_route_hidden_by_another_stops_the_start() -> None:
    """The application would run the first with the need of the second."""

    @needs("admin")
    async def first(_request: object) -> PlainTextResponse:
        return PlainTextResponse("")

    @needs("anyone")
    async def second(_request: object) -> PlainTextResponse:
        return PlainTextResponse("")

    for earlier in ("/things/{name}", "/things/open"):
        with pytest.raises(RuntimeError, match="hidden by"):
            read_needs([Route(earlier, first), Route("/things/open", second)])
    assert read_needs([Route("/things/open", second), Route("/things/{name}", first)]).declared


async def test_what_nobody_explained_is_an_error_id_outside_and_a_trace_inside(
    gateway: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def break_down(*_: object) -> None:
        raise ZeroDivisionError("the vault's number is 12345")

    monkeypatch.setattr(gateway.house.timeline, "read", break_down)
    with caplog.at_level(logging.ERROR):
        answer = await gateway.http.get("/v1/timeline", headers=gateway.token("read"))
    assert answer.status_code == 500
    error = answer.json()["error"]
    assert "12345" not in answer.text
    assert "content-security-policy" in answer.headers
    assert [record.__dict__.get("error_id") for record in caplog.records] == [error["error_id"]]
    assert caplog.records[0].exc_info is not None


async def test_a_socket_that_breaks_tells_its_error_id(
    gateway: Running, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def break_down(_name: str) -> None:
        raise ZeroDivisionError("the vault's number is 12345")

    monkeypatch.setattr(gateway.feeds.topics, "find", break_down)
    async with gateway.socket(gateway.token("read")) as opened:
        await opened.send('{"type": "subscribe", "topic": "timeline"}')
        await opened.wait_closed()
        assert opened.close_code == 1011
        assert opened.close_reason is not None
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert opened.close_reason == f"error {record.__dict__['error_id']}"


async def test_validation_never_echoes_what_was_sent(gateway: Running) -> None:
    secret = "hunter2-is-my-password"
    headers = gateway.browser()
    for body in ({"name": secret, "scopes": secret}, {secret: 1}, {"name": {secret: secret}, "scopes": [secret]}):
        answer = await gateway.http.post("/v1/tokens", headers=headers, json=body)
        assert answer.status_code == 422
        assert secret not in answer.text


# Revocation, with real connections


async def test_revocation_closes_sockets_within_a_second(gateway: Running) -> None:
    """Of the session that was revoked, and of no other."""
    kept, gone = gateway.browser(), gateway.browser()
    (first, second) = gateway.house.sessions.list()
    secret = gone["cookie"].partition("=")[2]
    revoked = gateway.house.sessions.verify(secret)
    assert revoked is not None
    assert {first.id, second.id} > {revoked.id}
    async with gateway.socket(kept) as stays, gateway.socket(gone) as ends:
        gateway.house.sessions.revoke(revoked.id)
        async with asyncio.timeout(1):
            await ends.wait_closed()
        assert (ends.close_code, ends.close_reason) == (4401, "signed out")
        await stays.send('{"type": "ping"}')
        assert json.loads(await stays.recv()) == {"type": "pong"}


async def test_a_revoked_token_loses_its_socket(gateway: Running) -> None:
    async with gateway.socket(gateway.token("read")) as opened:
        gateway.house.tokens.revoke("script")
        async with asyncio.timeout(1):
            await opened.wait_closed()
        assert opened.close_code == 4401


async def test_a_reader_that_is_stuck_is_cut_off_too(gateway: Running) -> None:
    """Whoever reads nothing cannot be told; the connection ends all the same."""
    headers = gateway.token("read")
    with socket.create_connection(("127.0.0.1", gateway.port)) as stuck:
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        stuck.setblocking(False)
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        handshake = (
            f"GET /v1/socket HTTP/1.1\r\nHost: {gateway.host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n{lines}\r\n"
        )
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(stuck, handshake.encode())
        assert b"101" in await loop.sock_recv(stuck, 1024)
        text = b'{"type":"subscribe","topic":"files"}'
        await loop.sock_sendall(stuck, bytes([0x81, 0x80 | len(text), 0, 0, 0, 0]) + text)
        await until(lambda: gateway.feeds.files.readers == 1)
        for _ in range(900):
            gateway.feeds.files.publish({"path": "x" * 2000})
            await asyncio.sleep(0)
        assert len(gateway.house.live) == 1
        gateway.house.tokens.revoke("script")
        async with asyncio.timeout(1.5):
            await until(lambda: len(gateway.house.live) == 0)
        assert gateway.feeds.files.readers == 0


async def test_a_stream_ends_with_the_session_it_belongs_to(gateway: Running) -> None:
    """A download under way stops; a request that has not answered yet is refused."""
    begun = asyncio.Event()

    @needs("read")
    async def stream(_request: object) -> StreamingResponse:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"first"
            await asyncio.Event().wait()

        return StreamingResponse(pieces())

    @needs("read")
    async def slow(_request: object) -> None:
        begun.set()
        await asyncio.Event().wait()

    inner = gateway.app._app
    assert isinstance(inner, FastAPI)
    for path, endpoint in (("/v1/stream", stream), ("/v1/slow", slow)):
        inner.router.routes.insert(0, Route(path, endpoint))
    gateway.app.needs = read_needs(inner.routes)
    headers = gateway.token("read")
    async with asyncio.TaskGroup() as group, gateway.http.stream("GET", "/v1/stream", headers=headers) as answer:
        pieces = answer.aiter_bytes()
        assert await anext(pieces) == b"first"
        waiting = group.create_task(gateway.http.get("/v1/slow", headers=headers, timeout=5))
        await begun.wait()
        gateway.house.tokens.revoke("script")
        async with asyncio.timeout(1.5):
            with pytest.raises(Exception, match=r"peer closed|incomplete|disconnected"):
                await anext(pieces)
            assert (await waiting).status_code == 401


async def test_a_session_that_expires_loses_its_socket(gateway: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing announces an expiry, so the open connections are looked through from time to time."""
    monkeypatch.setattr("freehold.gateway.live.LOOK_FOR_EXPIRED_EVERY", 1)
    async with gateway.socket(gateway.browser()) as opened:
        monkeypatch.setattr(gateway.house.sessions, "_clock", lambda: 1e12)
        async with asyncio.timeout(1):
            await opened.wait_closed()


async def test_signing_out_everywhere_answers_the_one_who_asked(gateway: Running) -> None:
    headers = gateway.browser()
    answer = await gateway.http.delete("/v1/sign-ins", headers=headers)
    assert (answer.status_code, answer.json()) == (200, {"ended": 1})
    assert (await gateway.http.get("/v1/me", headers=headers)).status_code == 401


async def test_reasons_are_for_the_owner(gateway: Running) -> None:
    """There is no keeper here: everyone may know that, only the owner may know why."""
    owner = gateway.token("read")
    for path, rows, reason in (("/health", "components", "last_error"), ("/ready", "missing", "reason")):
        stranger = (await gateway.http.get(path)).json()
        assert any(row["name"] == "keeper" for row in stranger[rows])
        assert {row[reason] for row in stranger[rows]} == {None}
        told = (await gateway.http.get(path, headers=owner)).json()
        assert any(row[reason] for row in told[rows])
        wrong = (await gateway.http.get(path, headers={"authorization": "Bearer fh_nothing"})).json()
        assert {row[reason] for row in wrong[rows]} == {None}


@pytest.mark.parametrize(
    "way",
    [
        *("https://example.org", "//example.org", "/\\example.org", "/%2f/example.org", "/v1/sign-out", "/sign-in"),
        *("/device#<script>", "/device#BCDF-GHJK\r\nset-cookie: a=b", "/device\n", "/device?next=//example.org", ""),
    ],
)
def test_nobody_is_led_anywhere_but_to_a_page_of_ours(way: str) -> None:
    assert way_of(way) == "/"


def test_one_is_led_back_to_where_one_was() -> None:
    for way in ("/", "/device#BCDF-GHJK", "/files"):
        assert way_of(way) == way
    assert way_of(None) == "/"


@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/sign-out"), ("DELETE", "/v1/me")])
async def test_one_gets_out_even_when_nothing_can_be_written_down(
    gateway: Running, monkeypatch: pytest.MonkeyPatch, method: str, path: str
) -> None:
    def full(*_args: object, **_kwargs: object) -> None:
        raise FreeholdError("timeline.full", "The disk is full")

    monkeypatch.setattr(gateway.house.timeline, "append", full)
    headers = gateway.browser()
    assert (await gateway.http.request(method, path, headers=headers, json={})).is_error
    assert (await gateway.http.get("/v1/me", headers=headers)).status_code == 401
