"""Previews: an app inside is shown whole, streamed, with its sockets, and sees what it would see at home."""

import asyncio
import hashlib
import json
import resource
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.gateway.previewing import EMPTY, OTHER, PATIENCE, PORT, Previewing, hear, next_text, previewing
from tests.gateway.running import next_message
from websockets.exceptions import ConnectionClosed, InvalidStatus

from freehold.client import Freehold

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]

LARGE = 1600 * 65536
# Named for a port where nobody listens: its program would be the keeper's to start, and there is none here.
SERVICE = f'[computer.services.site]\ncommand = "site"\nport = {EMPTY}\n'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Previewing]:
    async with previewing(tmp_path_factory.mktemp("preview"), SERVICE) as running:
        yield running


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cookie(house: Previewing) -> str:
    return await house.enter(house.browser())


async def test_ports_are_found_by_themselves_and_ours_are_left_out(house: Previewing) -> None:
    answer = await house.gateway.http.get("/v1/preview/ports", headers=house.gateway.token("read", name="ports"))
    assert answer.json() == {
        "ports": [
            {"port": PORT, "process": "python3", "service": None},
            {"port": OTHER, "process": "python3", "service": None},
        ]
    }


async def test_who_listens_to_the_topic_hears_of_a_new_port_and_of_its_end(house: Previewing) -> None:
    async with house.gateway.socket(house.gateway.token("read", name="topic")) as socket:
        await socket.send(json.dumps({"type": "subscribe", "topic": "ports"}))

        async def ports() -> list[int]:
            return [row["port"] for row in (await next_message(socket, "event"))["data"]["ports"]]

        assert await ports() == [PORT, OTHER]
        other = await house.computer.spawn(["/usr/bin/python3", "-m", "http.server", "9000", "--bind", "0.0.0.0"])
        assert await ports() == [PORT, OTHER, 9000]
        other.kill()
        assert await ports() == [PORT, OTHER]


async def test_an_address_hands_a_browser_over_and_leads_to_the_path(house: Previewing) -> None:
    address = await house.address(house.browser(), path="/seen?a=1")
    entered = await house.ask("GET", address)
    assert (entered.status, entered.values("location")) == (303, ["/seen?a=1"])
    assert entered.values("referrer-policy") == ["no-referrer"]
    (set_cookie,) = entered.values("set-cookie")
    pair, *attributes = set_cookie.split("; ")
    assert pair.startswith("__Host-freehold-preview=")
    assert attributes == ["Path=/", "Secure", "HttpOnly", "SameSite=None", "Partitioned"]
    last = house.gateway.house.timeline.tail(1)[0]
    assert (last.kind, dict(last.data), last.who) == ("preview.opened", {"port": PORT}, "owner")
    seen = await house.ask("GET", "/seen?a=1", cookie=pair)
    assert seen.json()["line"] == "GET /seen?a=1 HTTP/1.1"


async def test_the_app_sees_what_it_would_see_at_home(house: Previewing, cookie: str) -> None:
    """Its own name and origin, its own cookies; nothing of the owner's address, of ours, or of who sits between."""
    seen = await house.ask(
        "GET",
        "/seen",
        cookie=f"mine=1; {cookie}; __Host-freehold=forged; Freehold_x=1; last=2",
        origin=house.origin(),
        referer=f"{house.origin()}/page",
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
    own = await house.ask("GET", "/seen", cookie=cookie, authorization="Bearer of-the-app")
    assert ["authorization", "Bearer of-the-app"] in own.json()["fields"]


async def test_a_target_arrives_byte_for_byte(house: Previewing, cookie: str) -> None:
    target = "/seen?x=%2F..%2f&y=a+b&&=;{}|"
    assert (await house.ask("GET", target, cookie=cookie)).json()["line"] == f"GET {target} HTTP/1.1"


async def test_every_kind_of_body_is_brought_whole(house: Previewing, cookie: str) -> None:
    assert (await house.ask("GET", "/chunked", cookie=cookie)).body == b"abc"
    assert (await house.ask("GET", "/old", cookie=cookie)).body == b"old"
    assert (await house.ask("GET", "/hints", cookie=cookie)).body == b"at last"
    head = await house.ask("HEAD", "/seen", cookie=cookie)
    assert (head.status, head.body) == (200, b"")
    assert int(head.values("content-length")[0]) > 0
    tea = await house.ask("GET", "/teapot", cookie=cookie)
    assert (tea.status, tea.body) == (418, b"no coffee")
    sent = b"some words" * 1000
    told = await house.ask("POST", "/body", cookie=cookie, body=sent, origin=house.origin())
    assert told.json() == [len(sent), hashlib.sha256(sent).hexdigest()]
    head_of = f"POST /body HTTP/1.1\r\nHost: {house.host()}\r\nCookie: {cookie}\r\nTransfer-Encoding: chunked\r\n\r\n"
    told = await house.say(head_of.encode() + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n")
    assert told.json() == [5, hashlib.sha256(b"abcde").hexdigest()]


async def test_a_hundred_megabytes_each_way_take_no_memory(house: Previewing, cookie: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    reader, writer = await asyncio.open_connection("127.0.0.1", house.gateway.port, limit=65536)
    writer.write(f"GET /large HTTP/1.1\r\nHost: {house.host()}\r\nCookie: {cookie}\r\n\r\n".encode())
    head = await reader.readuntil(b"\r\n\r\n")
    assert f"content-length: {LARGE}".encode() in head
    left = LARGE
    while left:
        piece = await reader.read(65536)
        assert piece
        left -= len(piece)
    writer.write(
        f"POST /body HTTP/1.1\r\nHost: {house.host()}\r\nCookie: {cookie}\r\nContent-Length: {LARGE}\r\n\r\n".encode()
    )
    digest = hashlib.sha256()
    for _ in range(1600):
        writer.write(b"\1" * 65536)
        digest.update(b"\1" * 65536)
        await writer.drain()
    told = await hear(reader)
    writer.close()
    assert told.json() == [LARGE, digest.hexdigest()]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40 * 1024


async def test_an_app_waits_for_a_browser_that_reads_nothing(house: Previewing, cookie: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", house.gateway.port, limit=1024)
    writer.write(f"GET /endless HTTP/1.1\r\nHost: {house.host()}\r\nCookie: {cookie}\r\n\r\n".encode())
    assert b"200 OK" in await reader.readuntil(b"\r\n")
    tally = await house.ask("GET", "/tally", cookie=cookie)
    assert int(tally.body) < 16 * 1024 * 1024
    writer.close()


async def test_events_arrive_as_they_happen(house: Previewing, cookie: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", house.gateway.port)
    writer.write(f"GET /events HTTP/1.1\r\nHost: {house.host()}\r\nCookie: {cookie}\r\n\r\n".encode())
    async with asyncio.timeout(PATIENCE):
        await reader.readuntil(b"data: one")
        await house.ask("GET", "/next", cookie=cookie)
        await reader.readuntil(b"data: two")
    writer.close()


async def test_a_socket_speaks_both_ways_and_closes_as_the_app_says(house: Previewing, cookie: str) -> None:
    """With the app's choice of protocol, an origin that it knows, and without our cookie."""
    async with house.socket(f"mine=1; {cookie}", subprotocols=["vite-hmr", "other"]) as socket:
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


async def test_a_socket_that_the_app_refuses_is_refused_alike(house: Previewing, cookie: str) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with house.socket(cookie, "/teapot"):
            pass
    assert refused.value.response.status_code == 418


async def test_where_nothing_listens_the_page_looks_again_by_itself(house: Previewing) -> None:
    cookie = await house.enter(house.browser(), EMPTY)
    page = await house.ask("GET", "/", port=EMPTY, cookie=cookie, accept="text/html")
    assert page.status == 503
    assert b'http-equiv="refresh"' in page.body
    assert b"Nothing listens on port 7777 yet" in page.body
    assert b"freehold logs service-site shows what its program says" in page.body
    (policy,) = page.values("content-security-policy")
    assert f"frame-ancestors http://localhost:{house.gateway.port}" in policy
    told = await house.ask("GET", "/api", port=EMPTY, cookie=cookie, accept="*/*")
    assert (told.status, told.body) == (503, b"Nothing listens on port 7777 yet\n")


async def test_a_program_of_the_owners_gets_an_address_too(house: Previewing) -> None:
    _, secret = house.gateway.house.tokens.create("program", ("read", "terminal"), None)
    async with Freehold(house.gateway.origin, token=secret) as home:
        assert [one.port for one in await home.preview.ports()] == [PORT, OTHER]
        opened = await home.preview.open(OTHER, path="/seen")
    assert opened.origin == house.origin(OTHER)
    entered = await house.ask("GET", opened.address.removeprefix(opened.origin), port=OTHER)
    assert entered.values("location") == ["/seen"]


async def test_an_apps_redirect_stays_within_the_preview(house: Previewing, cookie: str) -> None:
    moved = await house.ask("GET", "/redirect", cookie=cookie)
    assert moved.values("location") == [f"{house.origin()}/next?a=1#b"]


async def test_a_neighbour_on_another_port_is_let_in_when_the_app_says_so(house: Previewing, cookie: str) -> None:
    asked = await house.ask("GET", "/cors", cookie=cookie, origin=house.origin(OTHER))
    assert asked.values("access-control-allow-origin") == [house.origin(OTHER)]


async def test_a_preview_outlives_a_restart_of_the_gateway(house: Previewing, cookie: str) -> None:
    """The pass is proved by a key in the vault; another process of the same Freehold knows it."""
    from freehold.gateway.preview.hosts import PreviewHosts
    from freehold.gateway.preview.passes import Passes, read_key

    inner = house.gateway.house
    passes = Passes(read_key(inner.home), inner.sessions, inner.tokens)
    place = PreviewHosts(inner.manifest).find(house.host().encode())
    assert place is not None
    assert passes.holder(cookie.encode(), place) is not None
    assert (inner.home.vault / "preview.key").stat().st_mode & 0o777 == 0o600


async def test_the_control_center_frames_previews_and_nothing_else(house: Previewing) -> None:
    page = await house.gateway.http.get("/")
    policy = page.headers["content-security-policy"].split("; ")
    assert f"frame-src http://*.preview.localhost:{house.gateway.port}" in policy
    assert "frame-ancestors 'none'" in policy
