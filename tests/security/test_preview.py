"""Attacks on previews without a browser: by who calls, by what stands in the request, and by the app behind it."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

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
from websockets.exceptions import ConnectionClosed, InvalidStatus

from freehold.gateway.preview import app
from freehold.gateway.preview.app import PreviewApp
from freehold.gateway.preview.hosts import PreviewHosts
from freehold.gateway.preview.passes import TOKEN_TTL, PreviewPasses
from freehold.gateway.rate_limit import RateLimit
from freehold.manifest import Manifest

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PreviewHarness]:
    async with running_previews(tmp_path_factory.mktemp("preview")) as running:
        yield running


@pytest.fixture(autouse=True)
def unlimited(house: PreviewHarness) -> None:
    previews(house)._anonymous_limit = RateLimit(rate=1e9, burst=1e9)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cookie(house: PreviewHarness) -> str:
    return await house.open_preview(house.browser())


def previews(house: PreviewHarness) -> PreviewApp:
    found = house.gateway.app._previews
    assert isinstance(found, PreviewApp)
    return found


# Who calls


@pytest.mark.parametrize(
    "host",
    [
        "5173.preview.localhost",
        "5173.preview.localhost.:PORT",
        "5173.preview.localhost.evil:PORT",
        "5173.preview.localhost:PORT.evil",
        "5173.preview.localhost:1",
        "05173.preview.localhost:PORT",
        "+5173.preview.localhost:PORT",
        "5173.5173.preview.localhost:PORT",
        "a.preview.localhost:PORT",
        ".preview.localhost:PORT",
        "preview.localhost:PORT",
        "5173.localhost:PORT",
        "5173.preview.127.0.0.1:PORT",
        "user@5173.preview.localhost:PORT",
        "22.preview.localhost:PORT",
        "80.preview.localhost:PORT",
        "3128.preview.localhost:PORT",
        "3129.preview.localhost:PORT",
        "3130.preview.localhost:PORT",
        "65536.preview.localhost:PORT",
        "99999.preview.localhost:PORT",
        "5\u00b9173.preview.localhost:PORT",
    ],
)
async def test_no_other_name_leads_to_a_preview(house: PreviewHarness, cookie: str, host: str) -> None:
    answer = await house.request("GET", "/seen", cookie=cookie, host=host.replace("PORT", str(house.gateway.port)))
    assert answer.status == 421


async def test_a_name_in_capitals_is_the_same_preview_and_two_names_are_none(
    house: PreviewHarness, cookie: str
) -> None:
    assert (await house.request("GET", "/seen", cookie=cookie, host=house.host().upper())).status == 200
    doubled = (
        f"GET /seen HTTP/1.1\r\nHost: {house.host()}\r\nHost: {house.host(OTHER_PORT)}\r\nCookie: {cookie}\r\n\r\n"
    )
    assert (await house.send_raw(doubled.encode())).status in (400, 421)


async def test_neither_origin_serves_anything_of_the_other(house: PreviewHarness, cookie: str) -> None:
    """The control center's sign-in opens no preview, a pass opens nothing of the API, and no path is shared."""
    browser = house.browser()
    assert (await house.request("GET", "/v1/me", authorization=browser.headers["authorization"])).status == 401
    assert (await house.request("GET", "/v1/me", cookie=cookie)).body == b"nothing here"
    assert (await house.gateway.http.get("/v1/me", headers={"cookie": cookie})).status_code == 401
    address = await house.new_address(browser)
    assert (await house.gateway.http.get(address, headers=browser.headers)).status_code == 404
    assert (await house.request("GET", "/.freehold/anything", cookie=cookie)).status == 403


async def test_only_a_proven_pass_for_this_very_port_opens_it(house: PreviewHarness, cookie: str) -> None:
    name, _, value = cookie.partition("=")
    assert (await house.request("GET", "/seen")).status == 401
    assert (await house.request("GET", "/seen", port=OTHER_PORT, cookie=cookie)).status == 401
    subject, _, proof = value.partition(".")
    for forged in (
        "",
        "x",
        subject,
        f"{subject}.",
        f"{subject}.{'0' * 64}",
        f"s{'0' * 16}.{proof}",
        f"t{subject[1:]}.{proof}",
    ):
        assert (await house.request("GET", "/seen", cookie=f"{name}={forged}")).status == 401, forged
    # A page can plant more of that name; the one that is proved still counts.
    assert (await house.request("GET", "/seen", cookie=f"{name}=planted; {cookie}; {name}=again")).status == 200


async def test_an_address_works_once_in_time_and_at_its_own_port(house: PreviewHarness) -> None:
    browser = house.browser()
    address = await house.new_address(browser)
    assert (await house.request("GET", address)).status == 303
    assert (await house.request("GET", address)).status == 403
    address = await house.new_address(browser)
    assert (await house.request("GET", address, port=OTHER_PORT)).status == 403
    assert (await house.request("GET", address)).status == 403, "a token that was shown at a wrong door is used up"
    address = await house.new_address(browser)
    assert (await house.request("POST", address)).status == 403
    for made_up in ("/.freehold/enter/", "/.freehold/enter/" + "A" * 43, "/.freehold/enter"):
        assert (await house.request("GET", made_up)).status == 403


async def test_an_address_is_too_late_after_half_a_minute(house: PreviewHarness) -> None:
    now = [0.0]
    inner = house.gateway.services
    passes = PreviewPasses(b"k" * 32, inner.sign_ins, inner.tokens, clock=lambda: now[0])
    place = PreviewHosts(inner.manifest).find(house.host().encode())
    assert place is not None
    from freehold.gateway.principal import Principal

    principal = Principal(sign_in=house.browser().sign_in)
    early, late = (passes.create_token(principal, place, "/") for _ in range(2))
    now[0] = TOKEN_TTL - 1
    assert passes.redeem_token(early, place) is not None
    now[0] = TOKEN_TTL + 1
    assert passes.redeem_token(late, place) is None


async def test_only_who_may_use_a_terminal_opens_a_preview_and_only_a_shown_port(house: PreviewHarness) -> None:
    http = house.gateway.http
    for scope in ("read", "prompt", "files", "history"):
        headers = house.gateway.token(scope, name=f"only-{scope}")
        assert (await http.post(f"/v1/preview/{PORT}/open", headers=headers)).status_code == 403
    headers = house.gateway.token("terminal", name="shell")
    for port in (0, 22, 1023, 3128, 3129, 3130, 65536, -1):
        assert (await http.post(f"/v1/preview/{port}/open", headers=headers)).status_code in (400, 422), port
    for path in ("//evil.example", "/\\evil.example", "evil", "https://evil.example", "/a\r\nSet-Cookie: a=b", "/ü"):
        answer = await http.post(f"/v1/preview/{PORT}/open", headers=headers, json={"path": path})
        assert answer.status_code == 422, path


async def test_signing_out_ends_what_is_open(house: PreviewHarness) -> None:
    """A socket, an answer that streams, a pass and an address that waits to be opened."""
    browser = house.browser()
    cookie = await house.open_preview(browser)
    address = await house.new_address(browser)
    reader, writer = await asyncio.open_connection("127.0.0.1", house.gateway.port)
    writer.write(f"GET /events HTTP/1.1\r\nHost: {house.host()}\r\nCookie: {cookie}\r\n\r\n".encode())
    async with asyncio.timeout(TIMEOUT):
        await reader.readuntil(b"data: one")
    async with house.socket(cookie) as socket:
        await next_text(socket)
        house.gateway.services.sign_ins.revoke(browser.sign_in.id)
        with pytest.raises(ConnectionClosed) as closed:
            await next_text(socket)
        async with asyncio.timeout(TIMEOUT):
            await reader.read()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4401
    writer.close()
    assert (await house.request("GET", "/seen", cookie=cookie)).status == 401
    assert (await house.request("GET", address)).status == 403


async def test_a_token_s_preview_ends_with_the_token(house: PreviewHarness) -> None:
    headers = house.gateway.token("terminal", name="brief")
    answer = await house.gateway.http.post(f"/v1/preview/{PORT}/open", headers=headers)
    entered = await house.request("GET", answer.json()["address"].removeprefix(house.origin()))
    cookie = entered.values("set-cookie")[0].partition(";")[0]
    assert (await house.request("GET", "/seen", cookie=cookie)).status == 200
    house.gateway.services.tokens.revoke("brief")
    assert (await house.request("GET", "/seen", cookie=cookie)).status == 401


async def test_a_page_elsewhere_gets_nowhere_even_with_the_pass(house: PreviewHarness, cookie: str) -> None:
    """Should a browser send the cookie along: fetch, form, image, socket; from the world, from us, from nowhere."""
    evil = (
        "https://evil.example",
        house.gateway.origin,
        "http://preview.localhost",
        f"http://5173.preview.localhost.evil:{house.gateway.port}",
    )
    for origin in evil:
        assert (await house.request("GET", "/seen", cookie=cookie, origin=origin)).status == 403
        assert (await house.request("POST", "/body", cookie=cookie, origin=origin, body=b"x")).status == 403
        with pytest.raises(InvalidStatus) as refused:
            async with house.socket(cookie, origin=origin):
                pass
        assert refused.value.response.status_code == 403
    with pytest.raises(InvalidStatus):
        async with house.socket(cookie, origin=None):
            pass
    assert (
        await house.request("POST", "/body", cookie=cookie, origin="null", sec_fetch_site="cross-site")
    ).status == 403
    image = await house.request("GET", "/seen", cookie=cookie, sec_fetch_site="cross-site", sec_fetch_mode="no-cors")
    assert image.status == 403
    link = await house.request("GET", "/seen", cookie=cookie, sec_fetch_site="cross-site", sec_fetch_mode="navigate")
    assert link.status == 200


async def test_a_service_worker_gets_no_script(house: PreviewHarness, cookie: str) -> None:
    """It would outlive an undo, and see the next one-time address before we do."""
    assert (await house.request("GET", "/worker.js", cookie=cookie)).status == 200
    assert (await house.request("GET", "/worker.js", cookie=cookie, service_worker="script")).status == 403


async def test_anonymous_limit_are_slowed_down(house: PreviewHarness) -> None:
    previews(house)._anonymous_limit = RateLimit(rate=0.01, burst=3)
    statuses = [(await house.request("GET", "/")).status for _ in range(5)]
    assert statuses == [401, 401, 401, 429, 429]


# What stands in the request


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        b"Content-Length: 4\r\nContent-Length: 5\r\n",
        b"Transfer-Encoding: xchunked\r\n",
        b"Transfer-Encoding: identity\r\nContent-Length: 4\r\n",
        b"Content-Length: +4\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"X: a\r\n Content-Length: 4\r\n",
        b"X: a\rContent-Length: 4\r\n",
        b"X: a\x00b\r\n",
    ],
)
async def test_a_smuggled_request_reaches_no_app(house: PreviewHarness, cookie: str, head: bytes) -> None:
    """Two lengths, odd codings, folded and broken lines: refused, or read by the app exactly as it was read here."""
    start = f"POST /seen HTTP/1.1\r\nHost: {house.host()}\r\nCookie: {cookie}\r\n".encode()
    smuggled = b"0\r\n\r\nGET /page HTTP/1.1\r\nHost: x\r\n\r\n"
    answer = await house.send_raw(start + head + b"\r\n" + smuggled)
    if answer.status == 400:
        return
    assert answer.status == 200
    told = answer.json()["fields"]
    lengths = [name for name, _ in told if name in ("content-length", "transfer-encoding")]
    assert len(lengths) <= 1
    assert not any("\r" in value or "\n" in value or "\0" in value for _, value in told)


async def test_odd_targets_and_methods_are_not_passed_on(house: PreviewHarness, cookie: str) -> None:
    for raw in (
        b"GET seen HTTP/1.1",
        b"GET /se\xc3\xa9n HTTP/1.1",
        b"CONNECT a:1 HTTP/1.1",
    ):
        answer = await house.send_raw(raw + f"\r\nHost: {house.host()}\r\nCookie: {cookie}\r\n\r\n".encode())
        assert answer.status in (400, 405), raw
    # An address as proxies are asked names another place, and is still only asked of this app.
    absolute = f"GET http://127.0.0.1:3128/seen HTTP/1.1\r\nHost: {house.host()}\r\nCookie: {cookie}\r\n\r\n"
    assert (await house.send_raw(absolute.encode())).json()["line"] == "GET /seen HTTP/1.1"
    assert (await house.request("TRACE", "/seen", cookie=cookie)).status in (400, 405)


# The app behind it


@pytest.mark.parametrize(
    "path",
    [
        "/garbage",
        "/long-head",
        "/many-fields",
        "/injected",
        "/always-hinting",
        "/switch",
        "/two-lengths",
        "/length-and-chunks",
    ],
)
async def test_an_answer_that_is_not_plain_http_is_not_shown(house: PreviewHarness, cookie: str, path: str) -> None:
    answer = await house.request("GET", path, cookie=cookie, accept="text/html")
    assert answer.status == 502
    assert answer.is_complete
    assert answer.values("set-cookie") == []


async def test_an_answer_that_breaks_off_does_not_pass_for_a_whole_one(house: PreviewHarness, cookie: str) -> None:
    cut = await house.request("GET", "/cut", cookie=cookie)
    assert (cut.is_complete, cut.body) == (False, b"short")


async def test_what_follows_an_answer_is_nobodys_answer(house: PreviewHarness, cookie: str) -> None:
    """On one connection of the browser's: the app's surplus is not taken for what is asked next."""
    reader, writer = await asyncio.open_connection("127.0.0.1", house.gateway.port)
    for path, body in (("/too-long", b"ok"), ("/hints", b"at last")):
        writer.write(f"GET {path} HTTP/1.1\r\nHost: {house.host()}\r\nCookie: {cookie}\r\n\r\n".encode())
        async with asyncio.timeout(TIMEOUT):
            assert (await read_answer(reader)).body == body
    writer.close()


async def test_an_app_sets_cookies_for_itself_alone_and_none_of_ours(house: PreviewHarness, cookie: str) -> None:
    answer = await house.request("GET", "/cookies", cookie=cookie)
    assert answer.values("set-cookie") == [
        "plain=1; Secure; SameSite=None; Partitioned",
        "wide=1; Path=/; Secure; SameSite=None; Partitioned",
    ]


async def test_an_app_says_nothing_for_its_site_or_about_who_frames_it(house: PreviewHarness, cookie: str) -> None:
    answer = await house.request("GET", "/framed", cookie=cookie)
    port = house.gateway.port
    assert answer.values("content-security-policy") == [
        "script-src 'self'",
        f"frame-ancestors 'self' http://freehold.localhost:{port}",
    ]
    for name in ("x-frame-options", "strict-transport-security", "clear-site-data", "alt-svc"):
        assert answer.values(name) == []
    assert answer.values("cross-origin-opener-policy") == ["same-origin-allow-popups"]


async def test_an_app_lets_nobody_else_read_it(house: PreviewHarness, cookie: str) -> None:
    answer = await house.request("GET", "/cors", cookie=cookie)
    assert answer.values("access-control-allow-origin") == []


@pytest.mark.parametrize("words", ["huge", "odd"])
async def test_a_socket_whose_app_talks_nonsense_is_closed(house: PreviewHarness, cookie: str, words: str) -> None:
    async with house.socket(cookie) as socket:
        await next_text(socket)
        await socket.send(words)
        with pytest.raises(ConnectionClosed) as closed:
            await next_text(socket)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code in (1009, 1011)


async def test_a_flood_of_open_requests_leaves_the_control_center_reachable(
    house: PreviewHarness, cookie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests that never end take the room of previews only, and give it back when their browser has gone."""
    monkeypatch.setattr(app, "MAX_CONCURRENT", 40)
    request = f"GET /silent HTTP/1.1\r\nHost: {house.host()}\r\nCookie: {cookie}\r\n\r\n".encode()
    flood = []
    for _ in range(40):
        _, writer = await asyncio.open_connection("127.0.0.1", house.gateway.port)
        writer.write(request)
        flood.append(writer)
    async with asyncio.timeout(TIMEOUT):
        while (await house.request("GET", "/seen", cookie=cookie)).status != 503:
            pass
        assert (await house.gateway.http.get("/v1/preview/ports", headers=house.browser().headers)).status_code == 200
        for writer in flood:
            writer.close()
        while (await house.request("GET", "/seen", cookie=cookie)).status != 200:
            pass
    assert previews(house)._open == {"http": 0, "websocket": 0}


async def test_sockets_have_less_room_than_requests(
    house: PreviewHarness, cookie: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each may hold a message: a page that opens them by the hundred must not fill the gateway's memory."""
    monkeypatch.setattr(app, "MAX_SOCKETS", 3)
    async with house.socket(cookie), house.socket(cookie), house.socket(cookie):
        with pytest.raises(InvalidStatus) as refused:
            async with house.socket(cookie):
                pass
        assert refused.value.response.status_code == 503
        assert (await house.request("GET", "/seen", cookie=cookie)).status == 200


async def test_a_longer_message_than_a_mebibyte_ends_the_socket(house: PreviewHarness, cookie: str) -> None:
    async with house.socket(cookie) as socket:
        await next_text(socket)
        await socket.send(b"x" * (1024 * 1024 + 1))
        with pytest.raises(ConnectionClosed) as closed:
            await next_text(socket)
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1009


async def test_the_app_learns_nothing_that_opens_anything(house: PreviewHarness) -> None:
    """No request, not even the hand-over's, brings a token, a pass or the sign-in inside."""
    browser = house.browser()
    address = await house.new_address(browser, path="/seen")
    token = address.rpartition("/")[2]
    entered = await house.request("GET", address)
    cookie = entered.values("set-cookie")[0].partition(";")[0]
    seen = await house.request("GET", "/seen", cookie=cookie, referer=f"{house.origin()}/")
    told = json.dumps(seen.json())
    key = browser.headers["authorization"].partition(" ")[2]
    for secret in (token, cookie.partition("=")[2], key, browser.sign_in.id):
        assert secret not in told


async def test_where_the_computer_is_away_the_page_says_so(tmp_path: Path) -> None:
    from tests.gateway.running_gateway import running_gateway

    async with running_gateway(tmp_path) as gateway:
        house = PreviewHarness(gateway, None)  # type: ignore[arg-type]  # there is none, which is the point
        cookie = await house.open_preview(house.browser(), UNUSED_PORT)
        page = await house.request("GET", "/", port=UNUSED_PORT, cookie=cookie, accept="text/html")
        assert page.status == 503
        assert b"The computer is not connected" in page.body


# A Freehold with a public address


async def test_a_public_control_center_has_previews_only_where_they_have_an_address() -> None:
    gateway = {"public_url": "https://agent.example.com", "preview_url": "https://preview.example.net"}
    hosts = PreviewHosts(Manifest.model_validate({"gateway": gateway}))
    family = hosts.domain_for("agent.example.com")
    assert family is not None
    assert family.origin(PORT) == "https://5173.preview.example.net"
    assert family.frame_origins == ("https://agent.example.com",)
    assert family.csp_source == "https://*.preview.example.net"
    local = hosts.domain_for("localhost:3000")
    assert local is not None
    assert local.origin(PORT) == "http://5173.preview.localhost:3000"
    found = hosts.find(b"5173.PREVIEW.example.net")
    assert found is not None
    assert found.origin == "https://5173.preview.example.net"
    for other in (b"5173.preview.example.net:443", b"5173.preview.example.com", b"5173.agent.example.com"):
        assert hosts.find(other) is None
    bare = PreviewHosts(Manifest.model_validate({"gateway": {"public_url": "https://agent.example.com"}}))
    assert bare.domain_for("agent.example.com") is None


async def test_a_public_preview_is_not_served_without_https(tmp_path: Path) -> None:
    from tests.gateway.running_gateway import running_gateway

    manifest = (
        'public_url = "https://agent.example.com"\npreview_url = "https://preview.example.net"\n'
        'trusted_proxies = ["127.0.0.1"]\n'
    )
    async with running_gateway(tmp_path, manifest) as gateway:
        house = PreviewHarness(gateway, None)  # type: ignore[arg-type]  # nothing gets that far
        host = "5173.preview.example.net"
        assert (await house.request("GET", "/", host=host, x_forwarded_proto="http")).status == 403
        assert (await house.request("GET", "/", host=host, x_forwarded_proto="https")).status == 401
