"""Previews: an app in the computer is shown completely, streamed, with its sockets, and gets local requests."""

import asyncio
import hashlib
import json
import resource
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.gateway.preview_harness import (
    OTHER_PORT,
    PORT,
    TIMEOUT,
    UNUSED_PORT,
    PreviewHarness,
    next_text,
    read_answer,
    running_previews,
)
from tests.gateway.running_gateway import next_message
from websockets.exceptions import ConnectionClosed, InvalidStatus

from freehold.client import Freehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]

LARGE = 1600 * 65536
# A service on a port without a listener: there is no keeper here to start it.
SERVICE = f'[computer.services.site]\ncommand = "site"\nport = {UNUSED_PORT}\n'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PreviewHarness]:
    async with running_previews(tmp_path_factory.mktemp("preview"), SERVICE) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cookie(harness: PreviewHarness) -> str:
    return await harness.open_preview(harness.browser())


async def test_ports_are_found_and_freeholds_own_are_left_out(harness: PreviewHarness) -> None:
    answer = await harness.gateway.http.get("/v1/preview/ports", headers=harness.gateway.token("read", name="ports"))
    assert answer.json() == {
        "ports": [
            {"port": PORT, "process": "python3", "service": None},
            {"port": OTHER_PORT, "process": "python3", "service": None},
        ]
    }


async def test_the_topic_publishes_new_and_closed_ports(harness: PreviewHarness) -> None:
    async with harness.gateway.socket(harness.gateway.token("read", name="topic")) as socket:
        await socket.send(json.dumps({"type": "subscribe", "topic": "ports"}))

        async def ports() -> list[int]:
            return [row["port"] for row in (await next_message(socket, "event"))["data"]["ports"]]

        assert await ports() == [PORT, OTHER_PORT]
        other = await harness.computer.spawn(["/usr/bin/python3", "-m", "http.server", "9000", "--bind", "0.0.0.0"])
        assert await ports() == [PORT, OTHER_PORT, 9000]
        other.kill()
        assert await ports() == [PORT, OTHER_PORT]


async def test_a_one_time_address_gives_a_pass_and_redirects_to_the_path(harness: PreviewHarness) -> None:
    address = await harness.new_address(harness.browser(), path="/seen?a=1")
    entered = await harness.request("GET", address)
    assert (entered.status, entered.values("location")) == (303, ["/seen?a=1"])
    assert entered.values("referrer-policy") == ["no-referrer"]
    (set_cookie,) = entered.values("set-cookie")
    pair, *attributes = set_cookie.split("; ")
    assert pair.startswith("__Host-freehold-preview=")
    assert attributes == ["Path=/", "Secure", "HttpOnly", "SameSite=None", "Partitioned"]
    (last,) = harness.gateway.services.timeline.tail(1, kinds=["preview.opened"])
    assert (last.kind, dict(last.data), last.who) == ("preview.opened", {"port": PORT}, "owner")
    seen = await harness.request("GET", "/seen?a=1", cookie=pair)
    assert seen.json()["line"] == "GET /seen?a=1 HTTP/1.1"


async def test_the_app_gets_the_headers_of_a_local_request(harness: PreviewHarness, cookie: str) -> None:
    """Its own host and origin and its own cookies; nothing of the owner, of Freehold, or of proxies."""
    seen = await harness.request(
        "GET",
        "/seen",
        cookie=f"mine=1; {cookie}; __Host-freehold=forged; Freehold_x=1; last=2",
        origin=harness.origin(),
        referer=f"{harness.origin()}/page",
        authorization="Bearer fh_abc",
        x_forwarded_for="203.0.113.9",
        forwarded="for=203.0.113.9",
        x_real_ip="203.0.113.9",
        connection="keep-alive, x-hop",
        x_hop="1",
        te="trailers",
        accept="text/plain",
    )
    assert seen.json()["fields"] == [
        ["host", f"localhost:{PORT}"],
        ["connection", "close"],
        ["origin", f"http://localhost:{PORT}"],
        ["referer", f"http://localhost:{PORT}/page"],
        ["accept", "text/plain"],
        ["cookie", "mine=1; last=2"],
    ]
    own = await harness.request("GET", "/seen", cookie=cookie, authorization="Bearer of-the-app")
    assert ["authorization", "Bearer of-the-app"] in own.json()["fields"]


async def test_a_target_arrives_byte_for_byte(harness: PreviewHarness, cookie: str) -> None:
    target = "/seen?x=%2F..%2f&y=a+b&&=;{}|"
    assert (await harness.request("GET", target, cookie=cookie)).json()["line"] == f"GET {target} HTTP/1.1"


async def test_every_kind_of_body_arrives_complete(harness: PreviewHarness, cookie: str) -> None:
    assert (await harness.request("GET", "/chunked", cookie=cookie)).body == b"abc"
    assert (await harness.request("GET", "/old", cookie=cookie)).body == b"old"
    assert (await harness.request("GET", "/hints", cookie=cookie)).body == b"at last"
    head = await harness.request("HEAD", "/seen", cookie=cookie)
    assert (head.status, head.body) == (200, b"")
    assert int(head.values("content-length")[0]) > 0
    tea = await harness.request("GET", "/teapot", cookie=cookie)
    assert (tea.status, tea.body) == (418, b"no coffee")
    sent = b"some words" * 1000
    told = await harness.request("POST", "/body", cookie=cookie, body=sent, origin=harness.origin())
    assert told.json() == [len(sent), hashlib.sha256(sent).hexdigest()]
    head_of = f"POST /body HTTP/1.1\r\nHost: {harness.host()}\r\nCookie: {cookie}\r\nTransfer-Encoding: chunked\r\n\r\n"
    told = await harness.send_raw(head_of.encode() + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
    assert told.json() == [5, hashlib.sha256(b"abcde").hexdigest()]


async def test_a_hundred_megabytes_each_way_take_no_memory(harness: PreviewHarness, cookie: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reader, writer = await asyncio.open_connection("127.0.0.1", harness.gateway.port, limit=65536)
    writer.write(f"GET /large HTTP/1.1\r\nHost: {harness.host()}\r\nCookie: {cookie}\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    assert f"content-length: {LARGE}".encode() in head
    left = LARGE
    while left:
        piece = await reader.read(65536)
        assert piece
        left -= len(piece)
    writer.write(
        f"POST /body HTTP/1.1\r\nHost: {harness.host()}\r\nCookie: {cookie}\r\nContent-Length: {LARGE}\r\n\r\n".encode()
    )
    digest = hashlib.sha256()
    for _ in range(1600):
        writer.write(b"\1" * 65536)
        digest.update(b"\1" * 65536)
        await writer.drain()
    told = await read_answer(reader)
    writer.close()
    assert told.json() == [LARGE, digest.hexdigest()]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40 * 1024


async def test_an_app_waits_for_a_browser_that_does_not_read(harness: PreviewHarness, cookie: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", harness.gateway.port, limit=1024)
    writer.write(f"GET /endless HTTP/1.1\r\nHost: {harness.host()}\r\nCookie: {cookie}\r\n\r\n".encode())
    assert b"200 OK" in await reader.readuntil(b"\r\n")
    tally = await harness.request("GET", "/tally", cookie=cookie)
    assert int(tally.body) < 16 * 1024 * 1024
    writer.close()


async def test_events_arrive_as_they_happen(harness: PreviewHarness, cookie: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", harness.gateway.port)
    writer.write(f"GET /events HTTP/1.1\r\nHost: {harness.host()}\r\nCookie: {cookie}\r\n\r\n".encode())
    async with asyncio.timeout(TIMEOUT):
        await reader.readuntil(b"data: one")
        await harness.request("GET", "/next", cookie=cookie)
        await reader.readuntil(b"data: two")
    writer.close()


async def test_a_socket_relays_both_ways_and_closes_with_the_apps_code(harness: PreviewHarness, cookie: str) -> None:
    """With the subprotocol that the app chooses, a local origin, and without our cookie."""
    async with harness.socket(f"mine=1; {cookie}", subprotocols=["vite-hmr", "other"]) as socket:
        assert socket.subprotocol == "vite-hmr"
        assert socket.response is not None
        assert "set-cookie" not in socket.response.headers
        fields = json.loads(await next_text(socket))
        assert fields["host"] == f"localhost:{PORT}"
        assert fields["origin"] == f"http://localhost:{PORT}"
        assert fields["cookie"] == "mine=1"
        await socket.send("grüße")
        assert await next_text(socket) == "grüße"
        await socket.send(b"\0\1" * 500_000)
        assert await socket.recv() == b"\0\1" * 500_000
        await socket.send("close")
        with pytest.raises(ConnectionClosed) as closed:
            await next_text(socket)
    assert closed.value.rcvd is not None
    assert (closed.value.rcvd.code, closed.value.rcvd.reason) == (4001, "enough")


async def test_a_socket_that_the_app_refuses_is_refused_with_its_status(harness: PreviewHarness, cookie: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with harness.socket(cookie, "/teapot"):
            pass
    assert refused.value.response.status_code == 418


async def test_a_port_without_a_listener_shows_a_page_that_reloads(harness: PreviewHarness) -> None:
    cookie = await harness.open_preview(harness.browser(), UNUSED_PORT)
    page = await harness.request("GET", "/", port=UNUSED_PORT, cookie=cookie, accept="text/html")
    assert page.status == 503
    assert b'http-equiv="refresh"' in page.body
    assert b"Nothing listens on port 7777 yet" in page.body
    assert b"freehold logs service-site shows the output of its program" in page.body
    (policy,) = page.values("content-security-policy")
    assert f"frame-ancestors http://freehold.localhost:{harness.gateway.port}" in policy
    told = await harness.request("GET", "/api", port=UNUSED_PORT, cookie=cookie, accept="*/*")
    assert (told.status, told.body) == (503, b"Nothing listens on port 7777 yet\n")


async def test_an_api_token_can_open_a_preview(harness: PreviewHarness) -> None:
    _, secret = harness.gateway.services.tokens.create("program", ("read", "terminal"), None)
    async with Freehold(harness.gateway.origin, token=secret) as home:
        assert [one.port for one in await home.preview.ports()] == [PORT, OTHER_PORT]
        opened = await home.preview.open(OTHER_PORT, path="/seen")
    assert opened.origin == harness.origin(OTHER_PORT)
    entered = await harness.request("GET", opened.address.removeprefix(opened.origin), port=OTHER_PORT)
    assert entered.values("location") == ["/seen"]


async def test_an_apps_redirect_stays_within_the_preview(harness: PreviewHarness, cookie: str) -> None:
    moved = await harness.request("GET", "/redirect", cookie=cookie)
    assert moved.values("location") == [f"{harness.origin()}/next?a=1#b"]


async def test_another_preview_may_read_when_the_app_allows_it(harness: PreviewHarness, cookie: str) -> None:
    asked = await harness.request("GET", "/cors", cookie=cookie, origin=harness.origin(OTHER_PORT))
    assert asked.values("access-control-allow-origin") == [harness.origin(OTHER_PORT)]


async def test_a_pass_stays_valid_after_a_restart_of_the_gateway(harness: PreviewHarness, cookie: str) -> None:
    """A key in the vault proves the pass; another process of the same Freehold has it too."""
    from freehold.gateway.preview.hosts import PreviewHosts
    from freehold.gateway.preview.passes import PreviewPasses, read_key

    inner = harness.gateway.services
    passes = PreviewPasses(read_key(inner.home), inner.sign_ins, inner.tokens)
    place = PreviewHosts(inner.manifest).find(harness.host().encode())
    assert place is not None
    assert passes.find_holder(cookie.encode(), place) is not None
    assert (inner.home.vault / "preview.key").stat().st_mode & 0o777 == 0o600


async def test_the_control_center_frames_previews_and_nothing_else(harness: PreviewHarness) -> None:
    page = await harness.gateway.http.get("/")
    policy = page.headers["content-security-policy"].split("; ")
    assert f"frame-src http://*.preview.localhost:{harness.gateway.port}" in policy
    assert "frame-ancestors 'none'" in policy
