"""A connection counts as clean only after an exchange that left nothing on it."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.support.condition import DEADLINE

from freehold.egress.http_exchange import MAX_INTERIM, HttpExchange
from freehold.egress.stream import PushbackReader
from freehold.errors import FreeholdError

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"


class Server:
    """A stream that records what is sent to it, and answers with the given bytes at once."""

    def __init__(self, answer: bytes) -> None:
        self.answer = answer
        self.received = b""
        self.is_reading = asyncio.Event()
        self.is_reading.set()

    async def read(self, n: int = 65536, /) -> bytes:
        taken, self.answer = self.answer[:n], self.answer[n:]
        return taken

    async def write(self, data: bytes, /) -> None:
        await self.is_reading.wait()
        self.received += data

    async def write_eof(self) -> None:
        raise AssertionError

    async def close(self) -> None:
        return


def open_exchange(server: Server, method: str = "POST", body: bytes = b"words") -> HttpExchange:
    return HttpExchange(server, PushbackReader(server), method, "/v1/x", [("Host", "example.org")], len(body))


async def converse(exchange: HttpExchange, body: bytes = b"words") -> bytes:
    await exchange.send_whole(body)
    await exchange.read_head()
    return b"".join([piece async for piece in exchange.read_body()])


@pytest.mark.parametrize("answer", [OK, CHUNKED, b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"])
async def test_a_whole_exchange_leaves_the_connection_clean(answer: bytes) -> None:
    server = Server(answer)
    exchange = open_exchange(server)
    assert not exchange.is_clean
    await converse(exchange)
    assert exchange.is_clean
    assert server.received == b"POST /v1/x HTTP/1.1\r\nHost: example.org\r\nContent-Length: 5\r\n\r\nwords"


UNCLEAN = {
    "until the end": b"HTTP/1.1 200 OK\r\n\r\nhello",
    "a close": b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello",
    "a close among others": b"HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 5\r\n\r\nhello",
    "an old server": b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello",
    "one byte more": OK + b"\n",
    "a second response": OK + OK,
    "a second response after chunks": CHUNKED + OK,
    "no content": b"HTTP/1.1 204 No\r\n\r\n",
    "no content with a body": b"HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\nhello",
    "not modified with a body": b"HTTP/1.1 304 No\r\nContent-Length: 5\r\n\r\nhello",
    "a continue that nobody asked for": b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
    "a hint": b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + OK,
    "a hint with a body": b"HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\n" + OK,
}


@pytest.mark.parametrize("kind", UNCLEAN)
async def test_a_connection_that_may_hold_something_is_not_clean(kind: str) -> None:
    exchange = open_exchange(Server(UNCLEAN[kind]))
    await converse(exchange)
    assert not exchange.is_clean


async def test_the_response_to_head_does_not_leave_it_clean() -> None:
    """A server that sends a body all the same would have it read as the next response."""
    exchange = open_exchange(Server(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), "HEAD", b"")
    assert await converse(exchange, b"") == b""
    assert not exchange.is_clean


REFUSED = {
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "two equal lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "a length and chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "an unknown coding": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    "a bare line feed": b"HTTP/1.1 200 OK\nContent-Length: 5\r\n\r\nhello",
    "a folded line": b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 5\r\n\r\nhello",
    "a null": b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 5\r\n\r\nhello",
    "a blank before the colon": b"HTTP/1.1 200 OK\r\nContent-Length : 5\r\n\r\nhello",
    "an underscore": b"HTTP/1.1 200 OK\r\nContent_Length: 5\r\n\r\nhello",
    "another protocol": b"HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\n",
    "too many hints": b"HTTP/1.1 103 Early Hints\r\n\r\n" * (MAX_INTERIM + 1) + OK,
    "bad chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n",
    "trailers": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX: y\r\n\r\n",
}


@pytest.mark.parametrize("kind", REFUSED)
async def test_a_response_with_two_readings_is_refused_and_its_connection_not_used_again(kind: str) -> None:
    exchange = open_exchange(Server(REFUSED[kind]))
    with pytest.raises(FreeholdError) as refused:
        await converse(exchange)
    assert refused.value.code == "egress.bad-response"
    assert not exchange.is_clean


@pytest.mark.parametrize("answer", [OK, CHUNKED], ids=["length", "chunks"])
async def test_a_response_that_ends_at_any_byte_is_never_taken_for_a_whole_one(answer: bytes) -> None:
    for cut in range(len(answer)):
        exchange = open_exchange(Server(answer[:cut]))
        with pytest.raises(FreeholdError, match="ended in the middle"):
            await converse(exchange)
        assert not exchange.is_clean


async def test_a_response_that_was_not_read_to_its_end_does_not_leave_it_clean() -> None:
    exchange = open_exchange(Server(CHUNKED))
    await exchange.send_whole(b"words")
    await exchange.read_head()
    assert await anext(aiter(exchange.read_body())) == b"hello"
    assert not exchange.is_clean


async def test_a_response_before_the_end_of_the_request_does_not_leave_it_clean() -> None:
    server = Server(OK)
    server.is_reading.clear()
    exchange = open_exchange(server)
    sending = asyncio.ensure_future(exchange.send_whole(b"words"))
    response = await exchange.read_head()
    server.is_reading.set()
    async with asyncio.timeout(DEADLINE):
        await sending
    assert response.status == 200
    assert [piece async for piece in exchange.read_body()] == [b"hello"]
    assert not exchange.is_clean


@pytest.mark.parametrize("body", [b"", b"word", b"words and more"])
async def test_a_body_that_is_not_as_long_as_announced_is_not_completed(body: bytes) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield body

    server = Server(OK)
    exchange = open_exchange(server)
    with pytest.raises(FreeholdError):
        await exchange.send(pieces())
    assert not server.received.endswith(b"words and more")
    await exchange.read_head()
    assert [piece async for piece in exchange.read_body()] == [b"hello"]
    assert not exchange.is_clean


@pytest.mark.parametrize(
    ("method", "target", "field"),
    [
        ("GET /x HTTP/1.1\r\nX:", "/", ("A", "b")),
        ("", "/", ("A", "b")),
        ("GET", "", ("A", "b")),
        ("GET", "/ HTTP/1.1\r\nX: y", ("A", "b")),
        ("GET", "/a b", ("A", "b")),
        ("GET", "/a#b", ("A", "b")),
        ("GET", "*", ("A", "b")),
        ("GET", "?a", ("A", "b")),
        ("GET", "http://example.org/", ("A", "b")),
        ("GET", "/", ("A", "b\r\nContent-Length: 7")),
        ("GET", "/", ("A", "b\nC: d")),
        ("GET", "/", ("A", "b\0")),
        ("GET", "/", ("A b", "c")),
        ("GET", "/", ("A:", "c")),
        ("GET", "/", ("", "c")),
        ("GET", "/", ("Content-Length", "7")),
        ("GET", "/", ("content_length", "7")),
        ("GET", "/", ("Transfer-Encoding", "chunked")),
    ],
)
def test_no_part_of_a_head_can_write_another_line_or_a_length(method: str, target: str, field: tuple[str, str]) -> None:
    with pytest.raises(FreeholdError):
        HttpExchange(Server(b""), PushbackReader(Server(b"")), method, target, [field], 0)
