"""Requests to servers that strangers name never reach a private address."""

import asyncio
import gzip
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response, StreamingResponse
from tests.identity.fake_atproto import FakeAtproto, FakeAtprotoServer
from tests.support.condition import DEADLINE

from freehold.identity.atproto.fetcher import Fetcher, FetchError, NetworkOverrides, is_global

PRIVATE = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "127.0.0.1", "127.255.255.254", "169.254.169.254", "172.16.0.1",
    "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1",
    "239.255.255.255", "240.0.0.1", "255.255.255.255", "::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1",
    "::ffff:a9fe:a9fe", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2002:7f00:1::", "2002:a9fe:a9fe::1", "fc00::1", "fd00:ec2::254", "fe80::1",
    "fe80::1%eth0", "fec0::1", "ff02::1", "ff0e::1", "::127.0.0.1", "not an address", "",
]  # fmt: skip
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "104.16.0.1",
    "2606:4700::1111",
    "2a00:1450:4001::1",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
]

BAD_URLS = [
    "http://pds.honest.net/", "ftp://pds.honest.net/", "file:///etc/passwd", "gopher://pds.honest.net/", "//pds.honest.net/",
    "https://", "https:///x", "https://user@pds.honest.net/", "https://user:pass@pds.honest.net/", "https://pds.honest.net@evil.com/",
    "https://pds.honest.net/#x", "https://pds.honest.net\\@evil.com/", "https://127.0.0.1/", "https://[::1]/", "https://[::ffff:7f00:1]/",
    "https://2130706433/", "https://0x7f000001/", "https://0x7f.1/", "https://017700000001/", "https://127.1/", "https://127.0.0.1.:443/",
    "https://localhost/", "https://LOCALHOST/", "https://localhost./", "https://metadata/", "https://pds.honest.net:0/",
    "https://pds.honest.net:99999/", "https://pds.honest.net:x/", "https://pds.honest.net/ x", "https://pds.honest.net/\r\nX: y",
    "https://pds.honest.net/\tx", "https://pds.hönest.net/", "https://pds。honest。net/", "https://pds.honest.net%2f@evil.com/",
    "https://-a.com/", "https://a..com/", "https://a_b.com/", "https://1.2.3.4.5/", "https://evil.com:443:80/", "javascript:alert(1)", "",
]  # fmt: skip


@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_address_is_recognized(address: str) -> None:
    assert not is_global(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_recognized(address: str) -> None:
    assert is_global(address)


@given(st.ip_addresses(v=4))
def test_an_embedded_ipv4_address_is_judged_the_same(address: Any) -> None:
    number = int(address)
    assert is_global(f"::ffff:{number >> 16:x}:{number & 0xFFFF:x}") == is_global(str(address))


@pytest.mark.parametrize("url", BAD_URLS)
async def test_an_ambiguous_url_is_refused(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("a name was looked up")

    monkeypatch.setattr(socket, "getaddrinfo", never)
    with pytest.raises(FetchError) as caught:
        await Fetcher().request("GET", url)
    assert caught.value.failure in ("url", "address")


def _resolves_to(monkeypatch: pytest.MonkeyPatch, *rounds: list[str]) -> list[str]:
    """Make each name resolve to these addresses, one list a call. Returns the names that were resolved."""
    asked: list[str] = []

    def answer(host: str, port: int, *_: object, **__: object) -> list[Any]:
        asked.append(host)
        found = rounds[min(len(asked), len(rounds)) - 1]
        return [
            (socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in found
        ]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    return asked


@pytest.mark.parametrize("address", [address for address in PRIVATE if address and " " not in address])
async def test_a_name_with_a_private_address_is_refused(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    _resolves_to(monkeypatch, [address])
    with pytest.raises(FetchError, match="which is not public") as caught:
        await Fetcher().request("GET", "https://pds.honest.net/")
    assert caught.value.failure == "address"


async def test_one_private_address_among_public_ones_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    _resolves_to(monkeypatch, ["8.8.8.8", "10.0.0.1"])
    with pytest.raises(FetchError, match=r"10\.0\.0\.1"):
        await Fetcher().request("GET", "https://pds.honest.net/")


async def test_a_name_is_resolved_once_and_that_address_used(
    monkeypatch: pytest.MonkeyPatch, atproto_server: FakeAtprotoServer
) -> None:
    """DNS rebinding: the connection goes to the address that was checked."""
    connected: list[str] = []

    async def note(protocol: Any, host: str, port: int, **options: Any) -> Any:
        connected.append(host)
        raise OSError("no traffic leaves this test")

    asked = _resolves_to(monkeypatch, ["8.8.8.8"], ["127.0.0.1"])
    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", note)
    with pytest.raises(FetchError, match="could not be reached"):
        await Fetcher().request("GET", "https://pds.honest.net/")
    assert asked[:1] == ["pds.honest.net"]
    assert set(asked[1:]) <= {"8.8.8.8"}
    assert set(connected) == {"8.8.8.8"}


@pytest.fixture
def fetcher(atproto_server: FakeAtprotoServer) -> Fetcher:
    return Fetcher(atproto_server.network, timeout=DEADLINE)


def answering(atproto: FakeAtproto, response: Response) -> str:
    atproto.overrides["pds.honest.net/x"] = lambda _: response
    return "https://pds.honest.net/x"


async def test_the_name_is_sent_and_the_certificate_is_checked_for_it(
    atproto_server: FakeAtprotoServer, atproto: FakeAtproto
) -> None:
    seen: list[str] = []

    def note(request: Request) -> Response:
        seen.append(request.headers["host"])
        return JSONResponse({"fine": True})

    atproto.overrides["pds.honest.net/x"] = note
    assert await Fetcher(atproto_server.network).get_json("https://pds.honest.net/x") == {"fine": True}
    assert seen == ["pds.honest.net"]
    elsewhere = NetworkOverrides(
        routes={"evil.com": ("127.0.0.1", atproto_server.port)}, authority=atproto_server.network.authority
    )
    with pytest.raises(FetchError, match=r"(?i)certificate"):
        await Fetcher(elsewhere).get_json("https://evil.com/x")


async def test_an_unknown_authority_is_refused(atproto_server: FakeAtprotoServer, atproto: FakeAtproto) -> None:
    with pytest.raises(FetchError, match=r"(?i)certificate"):
        await Fetcher(NetworkOverrides(routes=atproto_server.network.routes)).get_json("https://pds.honest.net/x")


async def test_redirects_are_not_followed(fetcher: Fetcher, atproto: FakeAtproto) -> None:
    url = answering(atproto, RedirectResponse("https://other.honest.net/inside", 301))
    with pytest.raises(FetchError) as caught:
        await fetcher.get_json(url)
    assert caught.value.failure == "redirect"
    assert atproto.requested == ["pds.honest.net/x"]


async def test_a_reply_that_is_too_long_is_refused(fetcher: Fetcher, atproto: FakeAtproto) -> None:
    async def endless() -> Any:
        for _ in range(200):
            yield b"x" * 65536

    with pytest.raises(FetchError) as caught:
        await fetcher.request("GET", answering(atproto, StreamingResponse(endless())))
    assert caught.value.failure == "size"


async def test_a_silent_server_times_out(atproto_server: FakeAtprotoServer) -> None:
    """A server that accepts and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        network = NetworkOverrides(routes={"pds.honest.net": silent.getsockname()})
        with pytest.raises(FetchError, match=r"within 0\.2 s") as caught:
            await Fetcher(network, timeout=0.2).request("GET", "https://pds.honest.net/")
    assert caught.value.failure == "unreachable"


async def test_compression_is_refused(fetcher: Fetcher, atproto: FakeAtproto) -> None:
    bomb = gzip.compress(b"\0" * 10_000_000)
    url = answering(atproto, Response(bomb, headers={"content-encoding": "gzip"}))
    with pytest.raises(FetchError, match="compressed"):
        await fetcher.request("GET", url)


async def test_proxies_of_the_environment_are_ignored(
    fetcher: Fetcher, atproto: FakeAtproto, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "SSL_CERT_FILE"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert await fetcher.get_json(answering(atproto, JSONResponse({"a": 1}))) == {"a": 1}


async def test_cookies_and_credentials_are_never_sent(fetcher: Fetcher, atproto: FakeAtproto) -> None:
    sent: list[set[str]] = []

    def note(request: Request) -> Response:
        sent.append(set(request.headers.keys()))
        return JSONResponse({}, headers={"set-cookie": "a=b; Secure"})

    atproto.overrides["pds.honest.net/x"] = note
    await fetcher.get_json("https://pds.honest.net/x")
    await fetcher.get_json("https://pds.honest.net/x")
    assert sent[1] == {"host", "accept", "accept-encoding", "user-agent", "connection"}


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff", b'{"a":' * 60_000])
async def test_a_reply_that_is_not_a_json_object_is_refused(
    fetcher: Fetcher, atproto: FakeAtproto, body: bytes
) -> None:
    with pytest.raises(FetchError) as caught:
        await fetcher.get_json(answering(atproto, Response(body, media_type="application/json")))
    assert caught.value.failure in ("json", "size")


async def test_plain_http_works_only_for_listed_origins() -> None:
    network = NetworkOverrides(plain=frozenset({"http://localhost:1"}))
    with pytest.raises(FetchError) as caught:
        await Fetcher(network).request("GET", "http://localhost:2/")
    assert caught.value.failure == "url"
