"""Messages that have one reading, and the many that have two."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from freehold.egress import http1
from freehold.egress.http1 import parse_request
from freehold.egress.stream import PushbackReader
from freehold.errors import FreeholdError


class Script:
    """A stream that returns the given pieces and then ends."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces = list(pieces)

    async def read(self, n: int = 65536, /) -> bytes:
        if not self.pieces:
            return b""
        piece = self.pieces.pop(0)
        if len(piece) > n:
            self.pieces.insert(0, piece[n:])
        return piece[:n]

    async def write(self, data: bytes, /) -> None:
        raise AssertionError(data)

    async def write_eof(self) -> None:
        raise AssertionError

    async def close(self) -> None:
        return


def request(*fields: bytes, first: bytes = b"POST http://example.org/ HTTP/1.1") -> bytes:
    return b"\r\n".join([first, *fields, b"", b""])


SMUGGLED = {
    "both lengths": request(b"Content-Length: 5", b"Transfer-Encoding: chunked"),
    "two different lengths": request(b"Content-Length: 5", b"Content-Length: 6"),
    "two equal lengths": request(b"Content-Length: 5", b"Content-Length: 5"),
    "a list of lengths": request(b"Content-Length: 5, 5"),
    "a signed length": request(b"Content-Length: +5"),
    "a hex length": request(b"Content-Length: 0x5"),
    "an empty length": request(b"Content-Length:"),
    "a negative length": request(b"Content-Length: -1"),
    "a length with underscores": request(b"Content-Length: 1_0"),
    "an endless length": request(b"Content-Length: 99999999999999999999"),
    "two codings": request(b"Transfer-Encoding: gzip, chunked"),
    "two coding fields": request(b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity"),
    "a quoted coding": request(b'Transfer-Encoding: "chunked"'),
    "an odd coding": request(b"Transfer-Encoding: xchunked"),
    "a coding with a tail": request(b"Transfer-Encoding: chunked;q=1"),
    "a coding with a tab": request(b"Transfer-Encoding:\x0bchunked"),
    "a coding in 1.0": request(b"Transfer-Encoding: chunked", first=b"POST http://example.org/ HTTP/1.0"),
    "a blank before the colon": request(b"Transfer-Encoding : chunked"),
    "a folded line": request(b"X-A: b", b" Transfer-Encoding: chunked"),
    "a folded line with a tab": request(b"X-A: b", b"\tContent-Length: 3"),
    "a blank first line": b"\r\n" + request(b"Host: example.org"),
    "a bare line feed": b"POST http://example.org/ HTTP/1.1\r\nX-A: b\nContent-Length: 3\r\n\r\n",
    "a bare return": b"POST http://example.org/ HTTP/1.1\r\nX-A: b\rContent-Length: 3\r\n\r\n",
    "a null": request(b"X-A: b\0c"),
    "a null in a name": request(b"X\0A: b"),
    "no colon": request(b"nonsense"),
    "an empty name": request(b": b"),
    "a name with a blank": request(b"X A: b"),
    "a name that is not ascii": request("X-\u00e4: b".encode()),
    "a delete character": request(b"X-A: \x7f"),
    "a length with an underscore": request(b"Content_Length: 5"),
    "a coding with an underscore": request(b"Transfer_Encoding: chunked"),
    "a host with an underscore in its twin": request(b"Proxy_Connection: keep-alive"),
    "a fragment": request(first=b"GET http://example.org/#/ HTTP/1.1"),
    "no version": request(first=b"GET http://example.org/"),
    "version 0.9": request(first=b"GET http://example.org/ HTTP/0.9"),
    "version 2": request(first=b"GET http://example.org/ HTTP/2.0"),
    "a long version": request(first=b"GET http://example.org/ HTTP/1.10"),
    "small letters": request(first=b"GET http://example.org/ http/1.1"),
    "two blanks": request(first=b"GET  http://example.org/ HTTP/1.1"),
    "a tab": request(first=b"GET\thttp://example.org/ HTTP/1.1"),
    "a blank in the target": request(first=b"GET http://example.org/a b HTTP/1.1"),
    "a trailing blank": request(first=b"GET http://example.org/ HTTP/1.1 "),
    "a target that is not ascii": request(first="GET http://ex\u00e4mple.org/ HTTP/1.1".encode()),
    "an odd method": request(first=b"GE(T http://example.org/ HTTP/1.1"),
    "http/2": b"PRI * HTTP/2.0\r\n\r\n",
    "too many fields": request(*[b"X: y"] * 200),
}


@pytest.mark.parametrize("trick", SMUGGLED)
def test_a_request_with_two_readings_is_refused(trick: str) -> None:
    with pytest.raises(FreeholdError) as refusal:
        parse_request(SMUGGLED[trick]).framing()
    assert refusal.value.code == "egress.malformed"


def test_a_plain_request_is_read() -> None:
    found = parse_request(request(b"Host: example.org", b"Content-Length: 5", b"X-Empty:", b"X-Pad: \t a b \t"))
    assert (found.method, found.target, found.version, found.framing()) == ("POST", "http://example.org/", "1.1", 5)
    assert found.values("x-empty") == [""]
    assert found.values("x-pad") == ["a b"]


def test_hop_by_hop_fields_and_those_named_by_connection_stay_here() -> None:
    found = parse_request(
        request(
            b"Connection: close, X-Secret",
            b"X-Secret: 1",
            b"Keep-Alive: 5",
            b"Proxy-Authorization: Basic Zm9v",
            b"Proxy-Connection: keep-alive",
            b"TE: trailers",
            b"Upgrade: h2c",
            b"Accept: */*",
        )
    )
    assert found.end_to_end() == [("Accept", "*/*")]


async def body_of(framing: http1.Framing, *pieces: bytes) -> tuple[bytes, bytes]:
    """The body, and what is left behind it."""
    inlet = PushbackReader(Script(*pieces))
    body = b"".join([piece async for piece in http1.read_body(inlet, framing)])
    return body, await inlet.read()


async def test_a_chunked_body_is_read_however_it_is_cut() -> None:
    whole = b"5\r\nhello\r\n1;a=b\r\n!\r\n0\r\n\r\nNEXT"
    assert await body_of("chunked", whole) == (b"hello!", b"NEXT")
    body, _ = await body_of("chunked", *[whole[place : place + 1] for place in range(len(whole))])
    assert body == b"hello!"


@pytest.mark.parametrize(
    "body",
    [
        b"5\nhello\r\n0\r\n\r\n",
        b"5\r\nhello!\r\n0\r\n\r\n",
        b"5\r\nhell",
        b"-5\r\nhello\r\n0\r\n\r\n",
        b"0x5\r\nhello\r\n0\r\n\r\n",
        b"\r\nhello\r\n0\r\n\r\n",
        b" 5\r\nhello\r\n0\r\n\r\n",
        b"5;\n\r\nhello\r\n0\r\n\r\n",
        b"fffffffffffffffff\r\n",
        b"5 \r\nhello\r\n0\r\n\r\n",
        b"5\r\nhello\r\n0\r\nX-Trailer: 1\r\n\r\n",
        b"5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n",
        b"5\r\nhello\r\n0\r\n\n",
        b"5\r\nhello\r\n0\r\n",
        b"5;" + b"x" * 300 + b"\r\nhello\r\n0\r\n\r\n",
        b"5;a\rb\r\nhello\r\n0\r\n\r\n",
        b"5" * 5000,
    ],
)
async def test_a_chunked_body_with_two_readings_is_refused(body: bytes) -> None:
    with pytest.raises(FreeholdError):
        await body_of("chunked", body)


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=8), st.integers(1, 40))
def test_chunks_come_back_as_they_went(pieces: list[bytes], cut: int) -> None:
    writer = http1.BodyEncoder("chunked")
    whole = b"".join(writer.encode(piece) for piece in pieces) + writer.end() + b"rest"
    cuts = [whole[start : start + cut] for start in range(0, len(whole), cut)]
    body, left = asyncio.run(body_of("chunked", *cuts))
    assert body == b"".join(pieces)
    assert b"rest".startswith(left)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_request_or_refused(data: bytes) -> None:
    for raw in (data, data + b"\r\n\r\n", request(data)):
        try:
            found = parse_request(raw)
            found.framing()
        except FreeholdError:
            continue
        for name, value in found.fields:
            assert not set("\r\n\0") & set(name + value)


@given(
    st.lists(st.sampled_from([b"Content-Length: 3", b"Transfer-Encoding: chunked", b"Content-Length: 4", b"Host: a"]))
)
def test_a_length_is_given_once_or_the_request_is_refused(fields: list[bytes]) -> None:
    lengths = [field for field in fields if not field.startswith(b"Host")]
    try:
        parse_request(request(*fields)).framing()
    except FreeholdError:
        assert len(lengths) > 1
    else:
        assert len(lengths) <= 1


def test_many_small_messages_in_one_piece_cost_no_more_than_their_length() -> None:
    class Counted(PushbackReader):
        copied = 0

        def put_back(self, data: bytes) -> None:
            before = self._held
            super().put_back(data)
            if self._held is not before:
                Counted.copied += len(self._held)

    whole = b"1\r\nx\r\n" * 10_000 + b"0\r\n\r\n"

    async def read() -> int:
        inlet = Counted(Script(whole))
        return sum([len(piece) async for piece in http1.read_body(inlet, "chunked")])

    assert asyncio.run(read()) == 10_000
    assert Counted.copied < 20 * len(whole)
