"""HTTP/1 messages, read strictly and written exactly: the one place where Freehold frames HTTP itself.

The model gateway, the egress proxy, previews and the host tools all use it. No byte that was received is forwarded as
framing: heads are parsed, checked and written anew, and bodies are decoded and framed anew. So a server reads exactly
the one request that was checked here. Existing parsers are too lenient for that: h11 accepts bare line feeds, unfolds
continued headers and lets Transfer-Encoding win over Content-Length. Each of these allows request smuggling.
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
_CHUNK_LINE_LIMIT = 256
"""The size of a chunk and its extensions, which are ignored."""

_TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"  # noqa: S105 - a token of HTTP, not a secret
_TEXT = r"[\t\x20-\x7e\x80-\xff]*"
# A target has no fragment: servers disagree on what a # means.
_REQUEST_LINE = re.compile(rf"({_TOKEN}) ([\x21\x22\x24-\x7e]+) HTTP/1\.([01])")
_STATUS_LINE = re.compile(rf"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: ({_TEXT}))?")
_FIELD = re.compile(rf"({_TOKEN}):[ \t]*({_TEXT})")
_LENGTH = re.compile(r"[0-9]{1,15}")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,12})(?:;[\t\x20-\x7e]*)?\r\n")

_FRAMING_FIELDS = frozenset({"content-length", "transfer-encoding"})
_HOP_BY_HOP = frozenset(
    {
        "connection",
        "http2-settings",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "upgrade",
    }
)
_NO_UNDERSCORE = _FRAMING_FIELDS | _HOP_BY_HOP | {"host", "expect"}
"""Servers that read `_` as `-` would take these fields for framing."""
METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})

Field = tuple[str, str]
RequestFraming = int | Literal["chunked"]
Framing = int | Literal["chunked", "until-end"]
"""The length of a body: a number of bytes, chunks, or everything until the end of the stream."""


def malformed(why: str) -> FreeholdError:
    return FreeholdError("egress.malformed", f"The request is not valid HTTP: {why}")


def bad_response(why: str) -> FreeholdError:
    return FreeholdError("egress.bad-response", f"The server's response is not valid HTTP: {why}")


def _cut_short() -> FreeholdError:
    return FreeholdError("egress.cut-short", "The connection ended in the middle of a body")


def _dashed(name: str) -> str:
    """The name of a field as a server may read it that knows no difference between `_` and `-`."""
    return name.lower().replace("_", "-")


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

    @property
    def keeps_open(self) -> bool:
        """Whether the sender lets the connection be used again."""
        return self.version == "1.1" and "close" not in self.listed("connection")

    def end_to_end(self, without: Iterable[str] = ()) -> list[Field]:
        """The fields to forward: no framing, not hop-by-hop, not named by Connection, not in `without`."""
        dropped = _FRAMING_FIELDS | _HOP_BY_HOP | self.listed("connection") | set(without)
        return [
            (name, value) for name, value in self.fields if name.lower() not in dropped and _dashed(name) not in dropped
        ]

    def _length_fields(self) -> tuple[list[str], bool] | None:
        """The lengths and whether the body is chunked. None when the length is given in two ways or in an unknown way."""
        lengths, codings = self.values("content-length"), self.values("transfer-encoding")
        if codings and (lengths or self.version == "1.0" or [coding.lower() for coding in codings] != ["chunked"]):
            return None
        if len(lengths) > 1 or not all(_LENGTH.fullmatch(length) for length in lengths):
            return None
        return lengths, bool(codings)


@dataclass(frozen=True)
class HttpRequest(HttpHead):
    method: str
    target: str

    def framing(self) -> RequestFraming:
        """Refuses a message that gives its length in two ways, even when both agree."""
        found = self._length_fields()
        if found is None:
            raise malformed("its length is given in more than one way or in an unknown way")
        lengths, chunked = found
        return "chunked" if chunked else int(lengths[0]) if lengths else 0

    @property
    def has_length(self) -> bool:
        """Whether the head says how long the body is. Without that, a request has no body."""
        return bool(self.values("content-length") or self.values("transfer-encoding"))


@dataclass(frozen=True)
class HttpResponse(HttpHead):
    status: int
    reason: str

    def framing(self, method: str) -> Framing:
        """Refuses a message that gives its length in two ways, also when it has no body."""
        found = self._length_fields()
        if found is None:
            raise bad_response("its length is given in more than one way or in an unknown way")
        lengths, chunked = found
        if not self.has_body(method):
            return 0
        return "chunked" if chunked else int(lengths[0]) if lengths else "until-end"

    def has_body(self, method: str) -> bool:
        return method != "HEAD" and self.status >= 200 and self.status not in (204, 304)

    def announced_length(self) -> int | None:
        """The Content-Length of a response to HEAD or of a 304, which describes a body that is not sent."""
        found = self._length_fields()
        return int(found[0][0]) if found and found[0] and self.status >= 200 and self.status != 204 else None


# Reading


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
    """The next response's head, which may be an interim one."""
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
        if "_" in field[1] and _dashed(field[1]) in _NO_UNDERSCORE:
            raise malformed(f"some servers read the header field {field[1][:40]} as {_dashed(field[1])}")
        fields.append((field[1], field[2].rstrip(" \t")))
    return lines[0], tuple(fields)


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


async def _exactly(reader: PushbackReader, count: int) -> AsyncIterator[bytes]:
    while count:
        piece = await reader.read(min(CHUNK, count))
        if not piece:
            raise _cut_short()
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
        await _end_line(reader, "a chunk is longer than its size")
    # Trailers could carry a second length, or a field that was checked before the body.
    await _end_line(reader, "trailers after a body are not accepted")


async def _end_line(reader: PushbackReader, otherwise: str) -> None:
    if b"".join([piece async for piece in _exactly(reader, 2)]) != b"\r\n":
        raise malformed(otherwise)


# Writing


def encode_request(method: str, target: str, fields: Iterable[Field], length: RequestFraming | None) -> bytes:
    """The head of a request. Its length is written here and nowhere else.

    None leaves the length out. That is for a request without a body, on a connection that carries no other.
    Raises `egress.malformed` for a part that a server could read in another way.
    """
    first = f"{method} {target} HTTP/1.1"
    if _REQUEST_LINE.fullmatch(first) is None:
        raise malformed("its method or target has invalid characters")
    if not target.startswith("/") and (method, target) != ("OPTIONS", "*"):
        raise malformed("its target is not a path")
    return _encode_head(first, fields, length)


def encode_response(status: int, reason: str, fields: Iterable[Field], framing: Framing | None) -> bytes:
    """The head of a response. None leaves the length out, for a response that has no body whatever its head says."""
    first = f"HTTP/1.1 {status} {reason}"
    if _STATUS_LINE.fullmatch(first) is None:
        raise bad_response("its status line has invalid characters")
    return _encode_head(first, fields, framing)


def check_field(name: str, value: str) -> Field:
    """Raises `egress.malformed` for a field that has no single reading, and for one that gives a length."""
    field = _FIELD.fullmatch(f"{name}:{value}")
    if field is None or field[1] != name or _dashed(name) in _FRAMING_FIELDS:
        raise malformed(f"the header field {name[:40]!a} cannot be sent")
    return name, value


def _encode_head(first: str, fields: Iterable[Field], framing: Framing | None) -> bytes:
    lines = [first, *(f"{name}: {value}" for name, value in (check_field(*field) for field in fields))]
    if framing == "chunked":
        lines.append("Transfer-Encoding: chunked")
    elif isinstance(framing, int):
        lines.append(f"Content-Length: {framing}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


class BodyEncoder:
    """Frames a body as its head announced it: not one byte more or less."""

    def __init__(self, framing: Framing) -> None:
        self._framing = framing
        self._left = framing if isinstance(framing, int) else 0

    def encode(self, piece: bytes) -> bytes:
        if self._framing == "chunked":
            return b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b""
        if self._framing != "until-end":
            self._left -= len(piece)
            if self._left < 0:
                raise malformed("its body is longer than its Content-Length")
        return piece

    def end(self) -> bytes:
        """What follows the last piece. Raises `egress.cut-short` when bytes are missing."""
        if self._left:
            raise _cut_short()
        return b"0\r\n\r\n" if self._framing == "chunked" else b""
