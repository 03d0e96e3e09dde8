"""The built-in agent's HTTP client against real servers, honest and broken."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.egress.proxy_harness import Authority, FakeResolver, make_authority, respond_once, run_proxy, run_server
from tests.support.condition import DEADLINE

from freehold.builtin.http_client import HttpError, open_request

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
BODY = b"0123456789" * 20_000
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n6\r\n world\r\n0\r\n\r\n"


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


async def get(url: str, **more: bool) -> tuple[int, bytes]:
    async with asyncio.timeout(DEADLINE), open_request("GET", url, {}, **more) as answer:  # type: ignore[arg-type]
        return answer.status, await answer.read()


@asynccontextmanager
async def serve(data: bytes) -> AsyncIterator[str]:
    async with run_server(respond_once(data)) as server:
        yield f"http://127.0.0.1:{server.port}/x?y=1"


@pytest.mark.parametrize(
    ("sent", "body"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n" + BODY, BODY),
        (CHUNKED, b"hello world"),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.1 103 Early\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok"),
    ],
)
async def test_every_framing_is_read(sent: bytes, body: bytes) -> None:
    async with serve(sent) as url:
        assert await get(url) == (200, body)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n",
        *(CHUNKED[:end] for end in range(CHUNKED.index(b"5;x"), len(CHUNKED) - 4, 3)),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 200_000,
    ],
)
async def test_a_broken_answer_is_an_error_and_never_a_whole_one(sent: bytes) -> None:
    async with serve(sent) as url:
        with pytest.raises(HttpError):
            await get(url)


async def test_a_body_is_sent_with_its_length() -> None:
    async with run_server(respond_once(CHUNKED)) as server:
        url = f"http://127.0.0.1:{server.port}/"
        async with open_request("POST", url, {"X-Key": "k"}, BODY) as answer:
            assert await answer.read() == b"hello world"
    assert server.bodies == [BODY]
    assert b"X-Key: k\r\n" in server.heads[0]


async def test_a_line_break_in_a_header_is_refused() -> None:
    async with serve(CHUNKED) as url:
        with pytest.raises(HttpError, match="line break"):
            async with open_request("GET", url, {"X": "a\r\nY: b"}):
                pass


async def test_nobody_listening_is_explained() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(HttpError, match="refused"):
            await get(f"http://127.0.0.1:{taken.getsockname()[1]}/")


@pytest.mark.parametrize("url", ["ftp://x/", "file:///etc/passwd", "http://", "nothing"])
async def test_an_address_that_is_not_http_is_refused(url: str) -> None:
    with pytest.raises(HttpError, match="must begin with"):
        await get(url)


async def test_redirects_are_followed_on_request_and_not_for_ever() -> None:
    async with serve(CHUNKED) as end:
        moved = f"HTTP/1.1 302 Found\r\nLocation: {end}\r\nContent-Length: 0\r\n\r\n".encode()
        async with serve(moved) as url:
            assert await get(url, follow_redirects=True) == (200, b"hello world")
            assert (await get(url))[0] == 302
    async with serve(b"HTTP/1.1 302 Found\r\nLocation: /again\r\nContent-Length: 0\r\n\r\n") as url:
        with pytest.raises(HttpError, match="redirects"):
            await get(url, follow_redirects=True)


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return make_authority(tmp_path_factory.mktemp("ca"), "example.org")


async def test_https_goes_through_the_proxy_with_its_credentials(
    tmp_path: Path, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = FakeResolver()
    names.set("example.org", ["127.0.0.1"])
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.ca_file))
    async with (
        run_server(respond_once(CHUNKED), tls=authority.server) as server,
        run_proxy(tmp_path, names=names) as proxy,
    ):
        await proxy.egress.allow_session("one", f"example.org:{server.port}", "conversation", who="session:one")
        monkeypatch.setenv("https_proxy", proxy.address_for("one"))
        assert await get(f"https://example.org:{server.port}/") == (200, b"hello world")
        monkeypatch.setenv("https_proxy", proxy.address_for("another"))
        with pytest.raises(HttpError, match=r"example\.org"):
            await get(f"https://example.org:{server.port}/")
    assert b"proxy-authorization" not in server.heads[0].lower()
