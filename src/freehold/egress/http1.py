"""A strict parser for HTTP/1 messages, so that no server can read the same bytes in another way.

Existing parsers are too lenient for a proxy: h11 accepts bare line feeds, unfolds continued headers and lets
Transfer-Encoding win over Content-Length. Each of these allows request smuggling. Bodies are decoded and framed anew, so
the server reads what was checked here.
"""

import re
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass
from typing import Literal

from freehold.egress.stream import CHUNK, PushbackReader
from freehold.errors import FreeholdError

HEAD_LIMIT = 32 * 1024
RESPONSE_HEAD_LIMIT = 128 * 1024
MAX_FIELDS = 128
_CHUNK_LINE_LIMIT = 1024
_TRAILER_LIMIT = 8 * 1024

_TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"  # noqa: S105 - a token of HTTP, not a secret
_REQUEST_LINE = re.compile(rf"({_TOKEN}) ([\x21-\x7e]+) HTTP/1\.([01])")
_STATUS_LINE = re.compile(r"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: ([\t\x20-\x7e\x80-\xff]*))?")
_FIELD = re.compile(rf"({_TOKEN}):[ \t]*([\t\x20-\x7e\x80-\xff]*)")
_LENGTH = re.compile(r"[0-9]{1,15}")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,12})[ \t]*(?:;[\t\x20-\x7e]*)?\r\n")

_HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)

Field = tuple[str, str]
Framing = int | Literal["chunked", "until-end"]
"""The length of a body: a number of bytes, chunks, or everything until the end of the stream."""


def malformed(why: str) -> FreeholdError:
    return FreeholdError("egress.malformed", f"The request is not valid HTTP: {why}")


@dataclass(frozen=True)
class HttpHead:
    """The header fields of a message, in their order."""

    fields: tuple[Field, ...]
    version: Literal["1.0", "1.1"]

    def values(self, name: str) -> list[str]:
        return [value for found, value in self.fields if found.lower() == name]

    def listed(self, name: str) -> set[str]:
        """The elements of a comma-separated field, in lower case."""
        return {item.strip().lower() for value in self.values(name) for item in value.split(",")} - {""}

    def end_to_end(self, without: Iterable[str] = ()) -> list[Field]:
        """The fields to forward: neither hop-by-hop nor named by Connection nor in `without`."""
        dropped = _HOP_BY_HOP | self.listed("connection") | set(without)
        return [(name, value) for name, value in self.fields if name.lower() not in dropped]


@dataclass(frozen=True)
class HttpRequest(HttpHead):
    method: str
    target: str

    def framing(self) -> Framing:
        """Refuses a message that gives its length in two ways, even when both agree."""
        lengths, codings = self.values("content-length"), self.values("transfer-encoding")
        if codings:
            if lengths or self.version == "1.0" or len(codings) > 1 or codings[0].lower() != "chunked":
                raise malformed("its length is given in more than one way or in an unknown way")
            return "chunked"
        if len(lengths) > 1 or not all(_LENGTH.fullmatch(length) for length in lengths):
            raise malformed("its Content-Length is not one number")
        return int(lengths[0]) if lengths else 0


@dataclass(frozen=True)
class HttpResponse(HttpHead):
    status: int
    reason: str

    def framing(self, method: str) -> Framing:
        if method == "HEAD" or self.status < 200 or self.status in (204, 304):
            return 0
        codings, lengths = self.values("transfer-encoding"), set(self.values("content-length"))
        if codings:
            if [coding.lower() for coding in codings] != ["chunked"]:
                raise bad_response("it uses an unknown transfer coding")
            return "chunked"
        if len(lengths) > 1 or not all(_LENGTH.fullmatch(length) for length in lengths):
            raise bad_response("its Content-Length is not one number")
        return int(lengths.pop()) if lengths else "until-end"


def bad_response(why: str) -> FreeholdError:
    return FreeholdError("egress.bad-response", f"The server's response is not valid HTTP: {why}")


async def read_request(reader: PushbackReader) -> HttpRequest:
    """The next request's head. Raises `egress.malformed`, `egress.too-long` or `egress.cut-short`."""
    return parse_request(await reader.read_through(b"\r\n\r\n", HEAD_LIMIT))


def parse_request(raw: bytes) -> HttpRequest:
    first, fields = _lines(raw)
    line = _REQUEST_LINE.fullmatch(first)
    if line is None:
        raise malformed("its first line must be a method, a target and HTTP/1.1")
    return HttpRequest(fields, "1.1" if line[3] == "1" else "1.0", line[1], line[2])


async def read_response(reader: PushbackReader) -> HttpResponse:
    raw = await reader.read_through(b"\r\n\r\n", RESPONSE_HEAD_LIMIT)
    try:
        first, fields = _lines(raw)
    except FreeholdError as error:
        raise bad_response("its head has invalid lines") from error
    line = _STATUS_LINE.fullmatch(first)
    if line is None:
        raise bad_response("its first line is not a status line")
    return HttpResponse(fields, "1.1" if line[1] == "1" else "1.0", int(line[2]), line[3] or "")


def _lines(raw: bytes) -> tuple[str, tuple[Field, ...]]:
    lines = raw.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    if len(lines) > MAX_FIELDS + 1:
        raise malformed(f"it has more than {MAX_FIELDS} header fields")
    fields = []
    for line in lines[1:]:
        # The pattern allows no CR, LF, NUL or leading blank: bare line ends and folded lines fail here.
        field = _FIELD.fullmatch(line)
        if field is None:
            raise malformed("a header field has invalid characters, a folded line or a blank before its colon")
        fields.append((field[1], field[2].rstrip(" \t")))
    return lines[0], tuple(fields)


def encode_head(first: str, fields: Iterable[Field]) -> bytes:
    lines = [first, *(f"{name}: {value}" for name, value in fields), "", ""]
    return "\r\n".join(lines).encode("latin-1")


async def read_body(reader: PushbackReader, framing: Framing) -> AsyncIterator[bytes]:
    """The body in pieces as they arrive. Raises `egress.cut-short` when it ends early."""
    if framing == "chunked":
        async for piece in _chunks(reader):
            yield piece
    elif framing == "until-end":
        while piece := await reader.read():
            yield piece
    else:
        async for piece in _exactly(reader, framing):
            yield piece


def encode_chunk(piece: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(piece), piece)


LAST_CHUNK = b"0\r\n\r\n"


async def _exactly(reader: PushbackReader, count: int) -> AsyncIterator[bytes]:
    while count:
        piece = await reader.read(min(CHUNK, count))
        if not piece:
            raise FreeholdError("egress.cut-short", "The connection ended in the middle of a body")
        count -= len(piece)
        yield piece


async def _chunks(reader: PushbackReader) -> AsyncIterator[bytes]:
    while True:
        line = _CHUNK_SIZE.fullmatch(await reader.read_through(b"\n", _CHUNK_LINE_LIMIT))
        if line is None:
            raise malformed("a chunk must begin with its size")
        size = int(line[1], 16)
        if size == 0:
            break
        async for piece in _exactly(reader, size):
            yield piece
        if await reader.read_through(b"\n", 2) != b"\r\n":
            raise malformed("a chunk is longer than its size")
    left = _TRAILER_LIMIT
    while (trailer := await reader.read_through(b"\n", left)) != b"\r\n":
        # Trailers are checked like fields and dropped: a Content-Length in a trailer could mislead the server.
        if not trailer.endswith(b"\r\n") or _FIELD.fullmatch(trailer[:-2].decode("latin-1")) is None:
            raise malformed("a trailer has invalid characters")
        left -= len(trailer)
        if left <= 0:
            raise malformed("its trailers are too long")
