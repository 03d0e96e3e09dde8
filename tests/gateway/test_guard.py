"""The guard of a listening gateway: what is not allowed is tried and refused."""

import asyncio
import json
import logging
import re
import socket
from collections.abc import AsyncIterator

import pytest
from fastapi import FastAPI
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route
from tests.gateway.running_gateway import RunningGateway
from tests.support.condition import DEADLINE, until
from websockets.exceptions import InvalidStatus

from freehold.errors import FreeholdError
from freehold.gateway.addresses import make_addresses, origin_of, rate_limit_key, read_headers
from freehold.gateway.application import describe_app
from freehold.gateway.rate_limit import RateLimit
from freehold.gateway.routes.sign_in import check_return_page
from freehold.gateway.routing import read_route_table, requires
from freehold.gateway.security_headers import SecurityHeaders
from freehold.identity.sign_ins import COOKIE_OF_0_1


async def raw(gateway: RunningGateway, request: bytes) -> bytes:
    """Send bytes and return the answer, for requests that no client library would send."""
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(request)
    async with asyncio.timeout(DEADLINE):
        answer = await reader.read(65536)
    writer.close()
    await writer.wait_closed()
    return answer


async def test_a_trailing_newline_does_not_lower_the_scope_of_a_route(gateway: RunningGateway) -> None:
    """The framework's patterns match a path with %0A at its end. The guard must not treat it as an unknown path."""
    headers = {**gateway.token("read"), "host": gateway.host}
    body = b'{"name": "worse", "scopes": ["admin"]}'
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items()).encode()
    start = b"POST /v1/tokens%0A HTTP/1.1\r\ncontent-type: application/json\r\n"
    answer = await raw(gateway, start + lines + b"content-length: %d\r\n\r\n" % len(body) + body)
    assert b"404" in answer.split(b"\r\n")[0]
    assert [token.name for token in gateway.services.tokens.list()] == ["script"]


@pytest.mark.parametrize("host", ["evil.example", "localhost", "localhost:1", "", "127.0.0.1.nip.example:{port}"])
async def test_a_foreign_host_name_is_refused(gateway: RunningGateway, host: str) -> None:
    """A name pointed at our address (DNS rebinding), and a browser's key with it."""
    wanted = host.format(port=gateway.port)
    answer = await gateway.http.get("/v1/me", headers={**gateway.browser(), "host": wanted})
    assert (answer.status_code, answer.json()["error"]["code"]) == (421, "gateway.wrong-host")


async def test_two_host_headers_are_refused(gateway: RunningGateway) -> None:
    line = f"host: {gateway.host}\r\n".encode()
    answer = await raw(gateway, b"GET /livez HTTP/1.1\r\n" + line + line + b"\r\n")
    assert b"421" in answer.split(b"\r\n")[0]


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://localhost:5173", "http://127.0.0.1:{port}", ""]
)
async def test_a_page_of_another_origin_cannot_act(gateway: RunningGateway, origin: str) -> None:
    """Not even one of our own other host names: each may act only on itself."""
    headers = {**gateway.browser(), "origin": origin.format(port=gateway.port)}
    answer = await gateway.http.post("/v1/sign-out", headers=headers, json={})
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "gateway.wrong-origin")
    with pytest.raises(InvalidStatus) as refused:
        async with gateway.socket(headers):
            pass
    assert refused.value.response.status_code == 403
    assert json.loads(refused.value.response.body or b"")["error"]["code"] == "gateway.wrong-origin"


async def test_a_page_that_hides_its_origin_cannot_act(gateway: RunningGateway) -> None:
    headers = gateway.browser()
    del headers["origin"]
    for sent in (headers, {"host": gateway.host, "cookie": "any=1"}):
        answer = await gateway.http.post("/v1/sign-out", headers=sent, json={})
        assert answer.status_code == 403
        with pytest.raises(InvalidStatus):
            async with gateway.socket(sent):
                pass


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_a_page_of_another_site_cannot_send_requests_to_the_api(gateway: RunningGateway, site: str) -> None:
    headers = {**gateway.browser(), "sec-fetch-site": site}
    del headers["origin"]
    assert (await gateway.http.get("/v1/timeline", headers=headers)).status_code == 403
    assert (await gateway.http.get("/", headers=headers)).status_code in (200, 503)  # links to us work


@pytest.mark.parametrize("name", [COOKIE_OF_0_1, "__Host-freehold-recovery", "authorization", "freehold.sign-in"])
async def test_no_cookie_signs_in(gateway: RunningGateway, name: str) -> None:
    """A browser sends cookies to every port of a name, so an app behind a forward would have what signs in."""
    key = gateway.browser()["authorization"].removeprefix("Sign-In ")
    for host in (gateway.host, f"localhost:{gateway.port}"):
        headers = {"cookie": f"{name}={key}", "host": host, "origin": f"http://{host}"}
        assert (await gateway.http.get("/v1/me", headers=headers)).status_code == 401
        body = {"name": "stolen", "scopes": ["admin"]}
        assert (await gateway.http.post("/v1/tokens", headers=headers, json=body)).status_code == 401
        with pytest.raises(InvalidStatus) as refused:
            async with gateway.socket(headers):
                pass
        assert refused.value.response.status_code == 401
    assert gateway.services.tokens.list() == []


async def test_no_cookie_signs_the_owner_out(gateway: RunningGateway) -> None:
    """An app behind a forward can set any cookie of the name that it is opened with."""
    headers = {**gateway.browser(), "cookie": f"{COOKIE_OF_0_1}=planted; __Host-freehold-sign-in=planted; a=1"}
    assert (await gateway.http.get("/v1/me", headers=headers)).status_code == 200
    async with gateway.socket(headers) as opened:
        await opened.send('{"type": "ping"}')
        assert json.loads(await opened.recv()) == {"type": "pong"}


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "[::1]"])
async def test_the_control_center_lives_only_on_its_own_name(gateway: RunningGateway, name: str) -> None:
    """Other names of the machine are shared with other programs: a browser is sent on, and a key is not accepted."""
    elsewhere = {"host": f"{name}:{gateway.port}", "origin": f"http://{name}:{gateway.port}"}
    for path in ("/", "/sign-in", "/device", "/assets/any.js", "/oauth/callback?code=1&state=2&iss=3"):
        answer = await gateway.http.get(path, headers=elsewhere)
        assert (answer.status_code, answer.headers["location"]) == (307, gateway.origin + path)
        assert answer.headers["set-cookie"].startswith(f"{COOKIE_OF_0_1}=; ")  # that of version 0.1 is deleted
    assert (await gateway.http.get("/v1/me", headers={**gateway.browser(), **elsewhere})).status_code == 401
    assert (await gateway.http.get("/v1/me", headers={**gateway.token("read"), **elsewhere})).status_code == 200
    assert (await gateway.http.get("/livez", headers=elsewhere)).status_code == 200


async def test_a_redirect_to_the_control_center_goes_nowhere_else(gateway: RunningGateway) -> None:
    for target in (b"//evil.example/", b"http://evil.example/", b"/\\evil.example", b"/@evil.example"):
        answer = await raw(gateway, b"GET " + target + b" HTTP/1.1\r\nhost: localhost:%d\r\n\r\n" % gateway.port)
        location = re.search(rb"location: (\S+)", answer)
        assert location is None or location[1].startswith(f"{gateway.origin}/".encode())


async def test_a_socket_takes_the_key_as_a_subprotocol(gateway: RunningGateway) -> None:
    """The only thing that a page can set. The subprotocol that the browser expects is chosen, never the key."""
    headers = gateway.browser()
    key = headers.pop("authorization").removeprefix("Sign-In ")
    async with gateway.socket(headers, subprotocols=["freehold", f"freehold.key.{key}"]) as opened:
        assert opened.subprotocol == "freehold"
        await opened.send('{"type": "ping"}')
        assert json.loads(await opened.recv()) == {"type": "pong"}
    with pytest.raises(InvalidStatus):
        async with gateway.socket(headers, subprotocols=["freehold", "freehold.key.wrong"]):
            pass


async def test_a_download_ticket_opens_one_address_once(gateway: RunningGateway) -> None:
    """A link has no header. Its ticket opens nothing else, and ends with the sign-in."""
    browser, stranger = gateway.browser(), {"host": gateway.host}

    async def ticket_for(address: str) -> str:
        answer = await gateway.http.post("/v1/download-tickets", headers=browser, json={"address": address})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["address"])

    wanted = "/v1/timeline?limit=1"
    address = await ticket_for(wanted)
    assert address.startswith(wanted)
    assert (await gateway.http.get(address, headers=stranger)).status_code == 200
    assert (await gateway.http.get(address, headers=stranger)).status_code == 401
    ticket = (await ticket_for(wanted)).partition("ticket=")[2]
    assert (await gateway.http.get(f"/v1/timeline?limit=2&ticket={ticket}", headers=stranger)).status_code == 401
    assert (await gateway.http.get(f"{wanted}&ticket={ticket}", headers=stranger)).status_code == 401  # used up
    ticket = (await ticket_for("/v1/tokens")).partition("ticket=")[2]
    body = {"name": "stolen", "scopes": ["admin"]}
    posted = await gateway.http.post(f"/v1/tokens?ticket={ticket}", headers=stranger, json=body)
    assert posted.status_code == 401
    later = await ticket_for(wanted)
    gateway.services.sign_ins.revoke_all()
    assert (await gateway.http.get(later, headers=stranger)).status_code == 401
    refused = await gateway.http.post("/v1/download-tickets", headers=gateway.token("admin"), json={"address": wanted})
    assert refused.status_code == 403


def test_a_repeated_header_is_invalid() -> None:
    headers = read_headers(
        [(b"origin", b"a"), (b"origin", b"a"), (b"x-forwarded-for", b"1"), (b"x-forwarded-for", b"2")]
    )
    assert headers == {b"origin": b"", b"x-forwarded-for": b"1, 2"}


async def test_a_key_is_not_a_token_and_a_token_is_not_a_key(gateway: RunningGateway) -> None:
    headers = gateway.browser()
    key, token = headers["authorization"].split()[1], gateway.token("admin")["authorization"].split()[1]
    for wrong in (
        f"Bearer {key}",
        f"Sign-In {token}",
        f"Sign-In  {key}",
        key,
        "Sign-In",
        f"Sign-In {key[:-1]}",
    ):
        assert (await gateway.http.get("/v1/me", headers={**headers, "authorization": wrong})).status_code == 401


async def test_a_wrong_token_is_refused(gateway: RunningGateway) -> None:
    headers = {**gateway.browser(), "authorization": "Bearer fh_wrong"}
    assert (await gateway.http.get("/v1/me", headers=headers)).status_code == 401


async def test_a_token_in_the_address_is_ignored(gateway: RunningGateway) -> None:
    secret = gateway.token("admin")["authorization"].removeprefix("Bearer ")
    for name in ("token", "access_token", "authorization"):
        assert (await gateway.http.get("/v1/me", params={name: secret})).status_code == 401


async def test_every_answer_has_security_headers(gateway: RunningGateway) -> None:
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


def test_an_answer_may_be_stricter_and_https_adds_strict_transport() -> None:
    said = SecurityHeaders(https=True).add([(b"content-security-policy", b"sandbox"), (b"content-type", b"text/html")])
    assert dict(said)[b"content-security-policy"] == b"sandbox"
    assert len([name for name, _ in said if name == b"content-security-policy"]) == 1
    assert dict(said)[b"strict-transport-security"].startswith(b"max-age=")


async def test_head_is_answered_as_get_without_the_body(gateway: RunningGateway) -> None:
    answer = await gateway.http.head("/livez")
    assert (answer.status_code, answer.content) == (200, b"")
    assert int(answer.headers["content-length"]) > 0
    assert (await gateway.http.head("/v1/me")).status_code == 401


async def test_an_unknown_path_looks_like_any_other_without_a_sign_in(gateway: RunningGateway) -> None:
    assert (await gateway.http.get("/v1/nothing")).status_code == 401
    token = gateway.token("read")
    assert (await gateway.http.get("/v1/nothing", headers=token)).status_code == 404
    wrong = await gateway.http.put("/v1/me", headers=token)
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "DELETE, GET, HEAD")


async def test_too_large_a_body_is_refused_with_and_without_its_length(gateway: RunningGateway) -> None:
    headers = {**gateway.browser(), "content-type": "application/json"}
    told = await gateway.http.post("/v1/tokens", headers=headers, content=b" " * (8 * 1024 * 1024 + 1))
    assert (told.status_code, told.json()["error"]["code"]) == (413, "gateway.too-large")

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(200):
            yield b" " * 65536

    untold = await gateway.http.post("/v1/tokens", headers=headers, content=endless())
    assert (untold.status_code, untold.json()["error"]["code"]) == (413, "gateway.too-large")


async def test_anonymous_requests_are_limited_with_a_retry_time(gateway: RunningGateway) -> None:
    gateway.app._anonymous_limit = RateLimit(rate=0.1, burst=3)
    answers = [await gateway.http.get("/livez") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert int(answers[-1].headers["retry-after"]) in range(1, 11)
    assert (await gateway.http.get("/v1/me", headers=gateway.token("read"))).status_code == 200  # the owner is not


async def test_an_anonymous_request_cannot_stay_open(gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("freehold.gateway.guard.ANONYMOUS_REQUEST_TIMEOUT", 0.05)
    start = b"POST /v1/devices HTTP/1.1\r\ncontent-type: application/json\r\ncontent-length: 100\r\n"
    answer = await raw(gateway, start + f"host: {gateway.host}\r\n\r\n".encode())
    assert b"408" in answer.split(b"\r\n")[0]


async def test_sign_in_is_throttled_and_a_forwarded_header_does_not_help(gateway: RunningGateway) -> None:
    # The time stands still: in six seconds there would be one more attempt.
    gateway.context.sign_in._per_address._clock = lambda: 0.0

    async def attempt(number: int) -> int:
        headers = {"x-forwarded-for": f"203.0.113.{number}", "forwarded": f"for=203.0.113.{number}"}
        answer = await gateway.http.post("/v1/sign-in/link", json={"token": "x" * 43}, headers=headers)
        return answer.status_code

    statuses = [await attempt(number) for number in range(25)]
    assert statuses[:20] == [410] * 20
    assert statuses[20:] == [429] * 5


def test_an_address_over_its_limit_does_not_use_up_the_total_limit() -> None:
    """Limiting one address must not lock the owner out."""
    from freehold.gateway.sign_in import SignInService

    sign_in = SignInService.__new__(SignInService)
    now = [0.0]
    sign_in._per_address = RateLimit(rate=1 / 6, burst=20, clock=lambda: now[0])
    sign_in._total = RateLimit(rate=1, burst=60, clock=lambda: now[0])
    refused = 0
    for _ in range(500):
        try:
            sign_in.count_attempt("203.0.113.9")
        except Exception:
            refused += 1
    assert refused == 480
    sign_in.count_attempt("198.51.100.1")


def test_addresses_of_one_network_share_a_limit() -> None:
    assert rate_limit_key("2001:db8::1") == rate_limit_key("2001:db8::ffff") != rate_limit_key("2001:db8:0:1::1")
    assert rate_limit_key("::ffff:192.0.2.1") == "192.0.2.1"
    assert rate_limit_key("192.0.2.1") != rate_limit_key("192.0.2.2")
    assert rate_limit_key("not an address") == "not an address"


def test_forwarded_headers_count_only_from_trusted_proxies() -> None:
    here = make_addresses(port=3000, public_url="https://Agent.example.com:443", trusted_proxies=("10.0.0.0/24",))
    assert here.origins["agent.example.com"] == "https://agent.example.com"
    assert here.find_caller("203.0.113.5", "1.2.3.4") == "203.0.113.5"
    assert here.find_caller("10.0.0.1", "6.6.6.6, 203.0.113.7, 10.0.0.2") == "203.0.113.7"
    assert here.find_caller("10.0.0.1", "garbage") == "10.0.0.1"
    assert here.find_caller("10.0.0.1", "") == "10.0.0.1"
    assert here.is_plain_http("agent.example.com", "10.0.0.1", b"http")
    assert here.is_plain_http("agent.example.com", "10.0.0.1", b"")
    assert not here.is_plain_http("agent.example.com", "10.0.0.1", b"https")
    assert not here.is_plain_http("agent.example.com", "203.0.113.5", b"http")
    assert not here.is_plain_http("localhost:3000", "10.0.0.1", b"http")


def test_an_origin_is_written_as_browsers_write_it() -> None:
    assert origin_of("http://localhost:80") == "http://localhost"
    assert origin_of("HTTPS://Agent.Example.com/") == "https://agent.example.com"
    assert origin_of("http://[::1]:3000") == "http://[::1]:3000"


# What a route can do wrong


def test_a_route_without_a_scope_stops_the_start() -> None:
    app = describe_app()

    @app.get("/silent")
    async def silent() -> None: ...

    with pytest.raises(RuntimeError, match="/silent"):
        read_route_table(app.routes)


def test_a_mount_stops_the_start() -> None:
    app = describe_app()
    app.mount("/inner", FastAPI())
    with pytest.raises(TypeError, match="/inner"):
        read_route_table(app.routes)


def test_a_route_hidden_by_another_stops_the_start() -> None:
    """The application would run the first route with the scope of the second."""

    @requires("admin")
    async def first(_request: object) -> PlainTextResponse:
        return PlainTextResponse("")

    @requires("anyone")
    async def second(_request: object) -> PlainTextResponse:
        return PlainTextResponse("")

    for earlier in ("/things/{name}", "/things/open"):
        with pytest.raises(RuntimeError, match="hidden by"):
            read_route_table([Route(earlier, first), Route("/things/open", second)])
    assert read_route_table([Route("/things/open", second), Route("/things/{name}", first)]).routes


async def test_an_unexpected_error_shows_only_an_id_and_is_logged(
    gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def break_down(*_: object) -> None:
        raise ZeroDivisionError("the vault's number is 12345")

    monkeypatch.setattr(gateway.services.timeline, "read", break_down)
    with caplog.at_level(logging.ERROR):
        answer = await gateway.http.get("/v1/timeline", headers=gateway.token("read"))
    assert answer.status_code == 500
    error = answer.json()["error"]
    assert "12345" not in answer.text
    assert "content-security-policy" in answer.headers
    assert [record.__dict__.get("error_id") for record in caplog.records] == [error["error_id"]]
    assert caplog.records[0].exc_info is not None


async def test_a_socket_that_fails_reports_its_error_id(
    gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def break_down(_name: str) -> None:
        raise ZeroDivisionError("the vault's number is 12345")

    monkeypatch.setattr(gateway.publisher.topics, "find", break_down)
    async with gateway.socket(gateway.token("read")) as opened:
        await opened.send('{"type": "subscribe", "topic": "timeline"}')
        await opened.wait_closed()
        assert opened.close_code == 1011
        assert opened.close_reason is not None
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert opened.close_reason == f"error {record.__dict__['error_id']}"


async def test_validation_errors_never_repeat_sent_values(gateway: RunningGateway) -> None:
    secret = "hunter2-is-my-password"
    headers = gateway.browser()
    for body in ({"name": secret, "scopes": secret}, {secret: 1}, {"name": {secret: secret}, "scopes": [secret]}):
        answer = await gateway.http.post("/v1/tokens", headers=headers, json=body)
        assert answer.status_code == 422
        assert secret not in answer.text


# Revocation, with real connections


async def test_revocation_closes_sockets(gateway: RunningGateway) -> None:
    """Of the revoked sign-in, and of no other."""
    kept, gone = gateway.browser(), gateway.browser()
    (first, second) = gateway.services.sign_ins.list()
    secret = gone["authorization"].partition(" ")[2]
    revoked = gateway.services.sign_ins.verify(secret)
    assert revoked is not None
    assert {first.id, second.id} > {revoked.id}
    async with gateway.socket(kept) as stays, gateway.socket(gone) as ends:
        gateway.services.sign_ins.revoke(revoked.id)
        async with asyncio.timeout(DEADLINE):
            await ends.wait_closed()
        assert (ends.close_code, ends.close_reason) == (4401, "signed out")
        await stays.send('{"type": "ping"}')
        assert json.loads(await stays.recv()) == {"type": "pong"}


async def test_a_revoked_token_loses_its_socket(gateway: RunningGateway) -> None:
    async with gateway.socket(gateway.token("read")) as opened:
        gateway.services.tokens.revoke("script")
        async with asyncio.timeout(DEADLINE):
            await opened.wait_closed()
        assert opened.close_code == 4401


async def test_a_client_that_does_not_read_is_disconnected_too(gateway: RunningGateway) -> None:
    """A client that does not read gets no close message; the connection ends all the same."""
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
        await until(lambda: gateway.publisher.files.readers == 1)
        for _ in range(900):
            gateway.publisher.files.publish({"path": "x" * 2000})
            await asyncio.sleep(0)
        assert len(gateway.services.connections) == 1
        gateway.services.tokens.revoke("script")
        await until(lambda: len(gateway.services.connections) == 0)
        assert gateway.publisher.files.readers == 0


async def test_a_stream_ends_with_its_sign_in(gateway: RunningGateway) -> None:
    """A running download stops; a request without an answer yet is refused."""
    begun = asyncio.Event()

    @requires("read")
    async def stream(_request: object) -> StreamingResponse:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"first"
            await asyncio.Event().wait()

        return StreamingResponse(pieces())

    @requires("read")
    async def slow(_request: object) -> None:
        begun.set()
        await asyncio.Event().wait()

    inner = gateway.app._app
    assert isinstance(inner, FastAPI)
    for path, endpoint in (("/v1/stream", stream), ("/v1/slow", slow)):
        inner.router.routes.insert(0, Route(path, endpoint))
    gateway.app.routes = read_route_table(inner.routes)
    headers = gateway.token("read")
    async with asyncio.TaskGroup() as group, gateway.http.stream("GET", "/v1/stream", headers=headers) as answer:
        pieces = answer.aiter_bytes()
        assert await anext(pieces) == b"first"
        waiting = group.create_task(gateway.http.get("/v1/slow", headers=headers))
        await begun.wait()
        gateway.services.tokens.revoke("script")
        async with asyncio.timeout(DEADLINE):
            with pytest.raises(Exception, match=r"peer closed|incomplete|disconnected"):
                await anext(pieces)
            assert (await waiting).status_code == 401


async def test_a_sign_in_that_expires_loses_its_socket(
    gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing announces an expiry, so open connections are checked from time to time."""
    monkeypatch.setattr("freehold.gateway.connections.ROUNDS_BETWEEN_EXPIRY_CHECKS", 1)
    async with gateway.socket(gateway.browser()) as opened:
        monkeypatch.setattr(gateway.services.sign_ins, "_clock", lambda: 1e12)
        async with asyncio.timeout(DEADLINE):
            await opened.wait_closed()


async def test_signing_out_everywhere_answers_its_own_request(gateway: RunningGateway) -> None:
    headers = gateway.browser()
    answer = await gateway.http.delete("/v1/sign-ins", headers=headers)
    assert (answer.status_code, answer.json()) == (200, {"ended": 1})
    assert (await gateway.http.get("/v1/me", headers=headers)).status_code == 401


async def test_reasons_are_shown_only_to_the_owner(gateway: RunningGateway) -> None:
    """There is no keeper here: anyone may know that, only the owner may know why."""
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
def test_a_sign_in_redirects_only_to_our_own_pages(way: str) -> None:
    assert check_return_page(way) == "/"


def test_a_sign_in_redirects_back_to_the_wanted_page() -> None:
    for way in ("/", "/device#BCDF-GHJK", "/files"):
        assert check_return_page(way) == way
    assert check_return_page(None) == "/"


@pytest.mark.parametrize(("method", "path"), [("POST", "/v1/sign-out"), ("DELETE", "/v1/me")])
async def test_signing_out_works_when_the_disk_is_full(
    gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch, method: str, path: str
) -> None:
    def full(*_args: object, **_kwargs: object) -> None:
        raise FreeholdError("timeline.full", "The disk is full")

    monkeypatch.setattr(gateway.services.timeline, "append", full)
    headers = gateway.browser()
    assert (await gateway.http.request(method, path, headers=headers, json={})).is_error
    assert (await gateway.http.get("/v1/me", headers=headers)).status_code == 401
