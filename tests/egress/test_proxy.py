"""Plain HTTP through the proxy, to real servers."""

import asyncio
import random
from pathlib import Path

import pytest
from tests.egress.proxy_harness import OK, FakeResolver, FakeServer, echo, hang_up, respond_once, run_proxy, run_server
from tests.support.condition import DEADLINE

from freehold.egress import EgressLimits


@pytest.fixture
def names() -> FakeResolver:
    known = FakeResolver()
    known.set("example.org", ["127.0.0.1"])
    return known


def get(target: str, *fields: str, method: str = "GET", body: bytes = b"") -> bytes:
    return "\r\n".join([f"{method} {target} HTTP/1.1", *fields, "", ""]).encode() + body


async def test_a_request_arrives_as_the_server_expects_it(tmp_path: Path, names: FakeResolver) -> None:
    async with (
        run_server(respond_once(OK)) as server,
        run_proxy(tmp_path, allow=[f"example.org:{server.port}"], names=names) as proxy,
    ):
        answer = await proxy.send(
            get(
                f"http://EXAMPLE.org:{server.port}/a?b=c",
                f"Host: example.org:{server.port}",
                "Proxy-Connection: keep-alive",
                proxy.authorization_for("one").strip(),
                "Accept: */*",
            )
        )
        head = server.heads[0]
        (event,) = proxy.events("connection_allowed")
        assert (event["rule"], event["who"]) == (f"allow example.org:{server.port}", "session:one")
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert answer.endswith(b"\r\n\r\nhello")
    assert b"Connection: close" in answer
    assert head.startswith(b"GET /a?b=c HTTP/1.1\r\n")
    assert head.count(b"Host: ") == 1
    assert f"Host: example.org:{server.port}\r\n".encode() in head
    assert b"proxy" not in head.lower()


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_is_passed_on(tmp_path: Path, names: FakeResolver, chunked: bool) -> None:
    body = bytes(range(256)) * 2000
    async with (
        run_server(respond_once(OK)) as server,
        run_proxy(tmp_path, allow=[f"example.org:{server.port}"], names=names) as proxy,
    ):
        target = f"http://example.org:{server.port}/"
        if chunked:
            framed = b"".join(b"%x\r\n%b\r\n" % (1000, body[at : at + 1000]) for at in range(0, len(body), 1000))
            request = get(target, "Transfer-Encoding: chunked", method="POST", body=framed + b"0\r\n\r\n")
        else:
            request = get(target, f"Content-Length: {len(body)}", method="POST", body=body)
        assert (await proxy.send(request)).endswith(b"hello")
        assert server.bodies == [body]
        assert proxy.egress.counters.bytes_up > len(body)


ANSWERS = {
    "chunked": (
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"5\r\nhello\r\n0\r\n\r\n",
    ),
    "until the end": (b"HTTP/1.1 200 OK\r\n\r\nhello", b"hello"),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
    "no content with a body": (b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", b""),
    "not modified with a body": (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello", b""),
    "a longer body than it says": (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello" + OK, b"hello"),
    "an interim answer": (b"HTTP/1.1 103 Early Hints\r\n\r\n" + OK, b"hello"),
}


@pytest.mark.parametrize("kind", ANSWERS)
async def test_answers_of_every_framing_are_passed_on(tmp_path: Path, names: FakeResolver, kind: str) -> None:
    sent, expected = ANSWERS[kind]
    async with (
        run_server(respond_once(sent)) as server,
        run_proxy(tmp_path, allow=[f"example.org:{server.port}"], names=names) as proxy,
    ):
        answer = await proxy.send(get(f"http://example.org:{server.port}/"))
    assert answer.partition(b"\r\n\r\n")[2].rpartition(b"\r\n\r\n" if b"Hints" in answer else b"\0")[2] == expected


BROKEN = {
    "nonsense": b"hello\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nhello",
    "two equal lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "a length and chunks": (
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    ),
    "chunks in 1.0": b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "two lengths without a body": b"HTTP/1.1 204 No\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n",
    "a bare line feed": b"HTTP/1.1 200 OK\r\nX-A: b\nContent-Length: 2\r\n\r\nhi",
    "an unknown coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: zip\r\n\r\n",
    "an unasked upgrade": b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    "a folded field": b"HTTP/1.1 200 OK\r\nX-A: b\r\n c\r\n\r\n",
    "a huge head": b"HTTP/1.1 200 OK\r\nX-A: " + b"b" * 200_000 + b"\r\n\r\n",
}


@pytest.mark.parametrize("kind", BROKEN)
async def test_an_answer_with_two_readings_is_not_passed_on(tmp_path: Path, names: FakeResolver, kind: str) -> None:
    async with (
        run_server(respond_once(BROKEN[kind])) as server,
        run_proxy(tmp_path, allow=[f"example.org:{server.port}"], names=names) as proxy,
    ):
        answer = await proxy.send(get(f"http://example.org:{server.port}/"))
    assert answer.split()[1] in (b"502", b"431")


async def test_a_truncated_answer_stays_truncated(tmp_path: Path, names: FakeResolver) -> None:
    cut = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n5\r\nwo"
    async with (
        run_server(respond_once(cut)) as server,
        run_proxy(tmp_path, allow=[f"example.org:{server.port}"], names=names) as proxy,
    ):
        answer = await proxy.send(get(f"http://example.org:{server.port}/"))
    assert not answer.endswith(b"0\r\n\r\n")


async def test_what_follows_a_request_is_never_read_as_another(tmp_path: Path, names: FakeResolver) -> None:
    async with (
        run_server(respond_once(OK)) as server,
        run_proxy(tmp_path, allow=[f"example.org:{server.port}"], names=names) as proxy,
    ):
        target = f"http://example.org:{server.port}/"
        answer = await proxy.send(get(target) + get("http://smuggled.example/"))
        assert server.connected == 1
        assert b"smuggled" not in b"".join(server.heads)
    assert answer.count(b"HTTP/1.1") == 1
    assert proxy.names.asked == ["example.org"]


async def test_expect_is_the_servers_to_answer(tmp_path: Path, names: FakeResolver) -> None:
    async def patient(seen: FakeServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        seen.bodies.append(await reader.readexactly(4))
        writer.write(OK)
        await writer.drain()

    async with (
        run_server(patient) as server,
        run_proxy(tmp_path, allow=[f"example.org:{server.port}"], names=names) as proxy,
    ):
        reader, writer = await proxy.open()
        target = f"http://example.org:{server.port}/"
        writer.write(get(target, "Expect: 100-continue", "Content-Length: 4", method="PUT"))
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"body")
        assert (await reader.read()).endswith(b"hello")
        await hang_up(writer)
        assert server.bodies == [b"body"]
        assert (await proxy.send(get(target, "Expect: miracles"))).startswith(b"HTTP/1.1 417")


async def test_a_server_may_answer_before_it_has_read_everything(tmp_path: Path, names: FakeResolver) -> None:
    async def curt(_seen: FakeServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()

    async with (
        run_server(curt) as server,
        run_proxy(tmp_path, allow=[f"example.org:{server.port}"], names=names) as proxy,
    ):
        answer = await proxy.send(
            get(f"http://example.org:{server.port}/", "Content-Length: 5000000", method="POST", body=bytes(1000))
        )
    assert answer.startswith(b"HTTP/1.1 413")


async def test_an_answer_is_streamed_and_not_gathered(tmp_path: Path, names: FakeResolver) -> None:
    go_on = asyncio.Event()

    async def slow(_seen: FakeServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello")
        await writer.drain()
        await go_on.wait()
        writer.write(b"world")
        await writer.drain()

    async with (
        run_server(slow) as server,
        run_proxy(tmp_path, allow=[f"example.org:{server.port}"], names=names) as proxy,
    ):
        reader, writer = await proxy.open()
        writer.write(get(f"http://example.org:{server.port}/"))
        await reader.readuntil(b"\r\n\r\nhello")
        go_on.set()
        assert await reader.read() == b"world"
        await hang_up(writer)


async def test_a_slow_reader_holds_the_server_back(tmp_path: Path, names: FakeResolver) -> None:
    sent = 0
    stuck = asyncio.Event()

    async def flood(_seen: FakeServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(bytes(65536))
            try:
                async with asyncio.timeout(1):
                    await writer.drain()
            except TimeoutError:
                stuck.set()
                return
            sent += 65536

    async with (
        run_server(flood) as server,
        run_proxy(tmp_path, allow=[f"example.org:{server.port}"], names=names) as proxy,
    ):
        _reader, writer = await proxy.open()
        writer.write(get(f"http://example.org:{server.port}/"))
        async with asyncio.timeout(DEADLINE):
            await stuck.wait()
        await hang_up(writer)
    # What the kernel's buffers hold, and not what the server would send.
    assert sent < 64 * 1024 * 1024


async def test_a_hanging_head_is_told_so(tmp_path: Path) -> None:
    async with run_proxy(tmp_path, limits=EgressLimits(head=0.2)) as proxy:
        reader, writer = await proxy.open()
        writer.write(b"GET http://example.org/ HTTP/1.1\r\nX-A: ")
        assert (await reader.read()).startswith(b"HTTP/1.1 408")
        await hang_up(writer)


async def test_one_connection_too_many_is_told_so(tmp_path: Path, names: FakeResolver) -> None:
    async with (
        run_server(echo) as server,
        run_proxy(
            tmp_path, allow=[f"example.org:{server.port}"], names=names, limits=EgressLimits(connections=1)
        ) as proxy,
    ):
        status, _reader, writer = await proxy.connect(f"example.org:{server.port}")
        assert status.startswith(b"HTTP/1.1 200")
        assert (await proxy.send(b"")).startswith(b"HTTP/1.1 503")
        assert (await proxy.event("limit_neared"))["reason"] == "80% of the 1 connections are open"
        await hang_up(writer)


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/", b"400"),
        ("*", b"400"),
        ("ftp://example.org/", b"400"),
        ("https://example.org/", b"501"),
        ("http://user:pass@example.org/", b"400"),
        ("http:///", b"400"),
        ("http://example.org/#part", b"400"),
        ("http://example.org\\@evil.example/", b"400"),
        ("http://unknown.example/", b"403"),
    ],
)
async def test_odd_targets_are_refused_in_words(
    tmp_path: Path, names: FakeResolver, target: str, status: bytes
) -> None:
    async with run_proxy(tmp_path, allow=["example.org"], names=names) as proxy:
        answer = await proxy.send(get(target))
    assert answer.split()[1] == status
    assert b"text/plain" in answer
    assert proxy.names.asked == []


async def test_a_refusal_names_the_way_to_allow_it(tmp_path: Path) -> None:
    async with run_proxy(tmp_path) as proxy:
        answer = await proxy.send(get("http://example.org/"))
        assert b"freehold egress allow example.org:80" in answer
        assert proxy.events("connection_refused")[0]["target"] == "example.org:80"


class Pieces:
    """A stream from inside, without a socket: says its pieces, and keeps what it is told."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)
        self.told = b""
        self.closed = False

    async def read(self, n: int = 65536, /) -> bytes:
        await asyncio.sleep(0)
        if not self.pieces:
            return b""
        piece = self.pieces.pop(0)
        if len(piece) > n:
            self.pieces.insert(0, piece[n:])
        return piece[:n]

    async def write(self, data: bytes, /) -> None:
        assert not self.closed
        self.told += data

    async def write_eof(self) -> None:
        return

    async def close(self) -> None:
        self.closed = True


SEEDS = (
    b"GET http://example.org/ HTTP/1.1\r\nHost: example.org\r\nAccept: */*\r\n\r\n",
    b"POST http://example.org/ HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
    b"POST http://example.org/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n",
)


async def test_whatever_is_said_is_answered_or_ends(tmp_path: Path) -> None:
    """Two thousand damaged requests: each is refused in words or cut off, none is let out, nothing is raised."""
    chance = random.Random(20261115)
    async with run_proxy(tmp_path, deny=["example.org"]) as proxy:
        for _ in range(2000):
            data = bytearray(chance.choice(SEEDS))
            for _ in range(chance.randint(0, 4)):
                place = chance.randrange(len(data))
                match chance.randrange(4):
                    case 0:
                        data[place] = chance.randrange(256)
                    case 1:
                        del data[place : place + chance.randint(1, 9)]
                    case 2:
                        data[place:place] = chance.choice(
                            [b"\r\n", b"\n", b"\r", b"\0", b" ", b":", bytes([chance.randrange(256)])]
                        )
                    case _:
                        data[place:place] = data[: chance.randint(1, 40)]
                if not data:
                    data += b"\n"
            cut = chance.randint(1, len(data))
            stream = Pieces(bytes(data[:cut]), bytes(data[cut:])) if cut < len(data) else Pieces(bytes(data))
            async with asyncio.timeout(DEADLINE):
                await proxy.egress.handle(stream)
            assert stream.closed
            assert stream.told.split()[1] in (b"400", b"403", b"417", b"431", b"501"), (bytes(data), stream.told)
        assert proxy.names.asked == []
        assert proxy.egress.counters.allowed == 0
        assert len(proxy.egress.connections) == 0


async def test_an_old_client_gets_its_body_without_chunks(tmp_path: Path, names: FakeResolver) -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
    interim = b"HTTP/1.1 103 Early Hints\r\n\r\n"
    async with (
        run_server(respond_once(interim + chunked)) as server,
        run_proxy(tmp_path, allow=[f"example.org:{server.port}"], names=names) as proxy,
    ):
        answer = await proxy.send(f"GET http://example.org:{server.port}/ HTTP/1.0\r\n\r\n".encode())
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200")
    assert b"chunked" not in head
    assert body == b"hello"


async def test_an_answer_to_head_has_no_body(tmp_path: Path, names: FakeResolver) -> None:
    head_only = b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"
    async with (
        run_server(respond_once(head_only)) as server,
        run_proxy(tmp_path, allow=[f"example.org:{server.port}"], names=names) as proxy,
    ):
        answer = await proxy.send(get(f"http://example.org:{server.port}/", method="HEAD"))
    assert b"Content-Length: 5000" in answer
    assert answer.endswith(b"\r\n\r\n")


@pytest.mark.parametrize("wish", ["h2c", "websocket, h2c", "TLS/1.0"])
async def test_no_other_protocol_is_switched_to(tmp_path: Path, names: FakeResolver, wish: str) -> None:
    async with (
        run_server(respond_once(OK)) as server,
        run_proxy(tmp_path, allow=[f"example.org:{server.port}"], names=names) as proxy,
    ):
        fields = ("Connection: Upgrade, HTTP2-Settings", f"Upgrade: {wish}", "HTTP2-Settings: AAMAAABkAAQAAP__")
        assert (await proxy.send(get(f"http://example.org:{server.port}/", *fields))).endswith(b"hello")
        assert b"upgrade" not in server.heads[0].lower()
        assert b"http2" not in server.heads[0].lower()
