"""Requests with many readings, made from a seed, and what our parser and writer make of them."""

from dataclasses import dataclass
from random import Random

from tests.egress.http_servers import ObservedRequest, RealServer

from freehold.egress import http1
from freehold.egress.http_exchange import HttpExchange
from freehold.egress.stream import PushbackReader
from freehold.errors import FreeholdError

HIDDEN = b"POST /v1/files HTTP/1.1\r\nHost: hidden\r\nContent-Length: 400\r\n\r\n"
NEXT = b"GET /next HTTP/1.1\r\nHost: next\r\nConnection: close\r\n\r\n"

_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_ODD_METHODS = ("get", "GET ", " GET", "G\0T", "TRACE", "POST\t", "GET\r\n", "", "PO(ST")
_TARGETS = ("/", "/a?b=c&d", "/%0d%0aX:%20y", "/a/../b//c", '/"<>[]{}|^`', "/?=;,", "//other/x", "/a%00")
_ODD_TARGETS = (
    "/a b",
    "/a\tb",
    "/\x7f",
    "/a#b",
    "/a\x80",
    "/a\0",
    "",
    "/ HTTP/1.1\r\nX: y\r\n\r\nGET /b",
    "/\r",
    "/\n",
)
_ODD_VERSIONS = ("HTTP/1.0", "HTTP/2.0", "HTTP/1.1 ", "http/1.1", "HTTP/1.2", "HTTP/01.1", "", "HTTP/1.1\n", "HTTP/0.9")
_FIELDS = (
    "X-Plain: value",
    "X-Empty:",
    "X-Pad: \t padded \t",
    "X-High: \xe4\xff",
    "X-Tab: a\tb",
    "X-Colon: a: b",
    "X-Length: Content-Length: 5",
    "x_under: 1",
    "Connection: close",
    "Connection: keep-alive, X-Plain",
    "Connection: content-length",
    "Connection: Transfer-Encoding, Host",
    "Keep-Alive: timeout=5",
    "TE: trailers",
    "Trailer: Content-Length",
    "Upgrade: h2c",
    "HTTP2-Settings: AAMAAABkAAQAAP__",
    "Proxy-Connection: keep-alive",
    "Expect: 100-continue",
    "Content-Type: application/json",
    "Accept: */*",
    "X!#$%&'*+-.^_`|~: odd",
)
_ODD_FIELDS = (
    "Content-Length: 5",
    "Content-Length: 0",
    "Content-Length: 400",
    "content-length: 3",
    "Content-Length: +5",
    "Content-Length: -1",
    "Content-Length: 5, 5",
    "Content-Length: 0x5",
    "Content-Length: 5 5",
    "Content-Length:",
    "Content-Length: 99999999999999999999",
    "Content-Length : 5",
    "Content-Length\t: 5",
    "Content_Length: 5",
    " Content-Length: 5",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: Chunked",
    "Transfer-Encoding: identity",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: chunked, chunked",
    "Transfer-Encoding: chunked;x",
    "Transfer-Encoding:\x0bchunked",
    "Transfer-Encoding: \x00chunked",
    'Transfer-Encoding: "chunked"',
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding : chunked",
    "Transfer_Encoding: chunked",
    "Transfer-Encoding:",
    "X: a\nTransfer-Encoding: chunked",
    "X: a\rTransfer-Encoding: chunked",
    "X: a\r\n Transfer-Encoding: chunked",
    "X: a\r\n\tContent-Length: 7",
    "X: a\0b",
    "X: \x7f",
    "X",
    ": x",
    "X Y: z",
    "X\xe4: y",
    "\0: y",
)


def _encode(text: str) -> bytes:
    return text.encode("latin-1")


def _body(random: Random) -> bytes:
    return random.choice(
        (b"", b"a", b"\r\n", b"0\r\n\r\n", HIDDEN, HIDDEN[:-2], b"x" * random.randrange(200), b"{}\n\n")
    )


def _chunked(random: Random, body: bytes) -> bytes:
    """The body in chunks, now and then with something odd."""
    pieces = []
    while body:
        size = random.randrange(1, len(body) + 1)
        shown = random.choice((b"%x", b"%X", b"00%x")) % size
        if random.random() < 0.1:
            shown = (
                random.choice((b"+%b", b"0x%b", b" %b", b"%b ", b"%b\t", b"-%b", b"%b;", b"%b;a=b", b'%b;"\n"')) % shown
            )
        end = b"\r\n" if random.random() < 0.97 else random.choice((b"\n", b"\r", b"\r\r\n", b""))
        pieces.append(shown + end + body[:size] + (b"\r\n" if random.random() < 0.97 else b"\n"))
        body = body[size:]
    last = b"0\r\n\r\n"
    if random.random() < 0.1:
        last = random.choice(
            (b"0\r\nX: y\r\n\r\n", b"0\n\n", b"0\r\n", b"0\r\nContent-Length: 5\r\n\r\n", b"", b"00\r\n\r\n")
        )
    return b"".join(pieces) + last


def make_request(
    random: Random, targets: tuple[str, ...] = _TARGETS, always: tuple[str, ...] = ("Host: example.org",)
) -> bytes:
    """The bytes of one client: a request that is mostly well formed, with odd parts, and sometimes more behind it."""

    def pick(usual: tuple[str, ...], odd: tuple[str, ...], chance: float) -> str:
        return random.choice(odd if random.random() < chance else usual)

    first = f"{pick(_METHODS, _ODD_METHODS, 0.03)} {pick(targets, _ODD_TARGETS, 0.03)} " + pick(
        ("HTTP/1.1",), _ODD_VERSIONS, 0.03
    )
    fields = [_encode(random.choice(_FIELDS)) for _ in range(random.randrange(5))]
    body = _body(random)
    framing = random.random()
    if framing < 0.4:
        fields.append(b"Content-Length: %d" % len(body))
    elif framing < 0.7:
        fields.append(b"Transfer-Encoding: chunked")
        body = _chunked(random, body)
    if random.random() < 0.15:
        fields.insert(random.randrange(len(fields) + 1), _encode(random.choice(_ODD_FIELDS)))
    random.shuffle(fields)
    lines = [_encode(first), *map(_encode, always), *fields, b""]
    end = b"\r\n"
    raw = b"".join(
        line + (end if random.random() < 0.995 else random.choice((b"\n", b"\r", b"\r\r\n"))) for line in lines
    )
    return _mutate(random, raw + body + random.choice((b"", b"", HIDDEN, NEXT)))


def _mutate(random: Random, raw: bytes) -> bytes:
    """Sometimes one byte is changed, added or removed, or the client hangs up somewhere."""
    chance, place = random.random(), random.randrange(len(raw))
    if chance < 0.05:
        return raw[:place] + bytes([random.randrange(256)]) + raw[place + 1 :]
    if chance < 0.1:
        return raw[:place] + random.choice((b"\r", b"\n", b"\0", b" ", b"\t", b":", b"\r\n")) + raw[place:]
    if chance < 0.13:
        return raw[:place] + raw[place + 1 :]
    if chance < 0.18:
        return raw[:place]
    return raw


class MemoryStream:
    """A client that sends the given bytes and then ends, or a server that records what it gets."""

    def __init__(self, data: bytes = b"") -> None:
        self._data = data
        self.written = b""

    async def read(self, n: int = 65536, /) -> bytes:
        taken, self._data = self._data[:n], self._data[n:]
        return taken

    async def write(self, data: bytes, /) -> None:
        self.written += data

    async def write_eof(self) -> None:
        return

    async def close(self) -> None:
        return


@dataclass(frozen=True)
class ForwardedRequest:
    """What was written to the server, and the request that was meant. None: the request broke off within its body."""

    written: bytes
    meant: ObservedRequest | None


async def forward(raw: bytes, *, explicit: bool) -> ForwardedRequest | None:
    """Reads a request and writes it to a server, on a connection that is kept open. None when it is refused.

    `explicit`: as the model gateway does it, which reads the whole body, refuses one where the method has none and
    always sends a length. Otherwise as the egress proxy does it, which streams.
    """
    reader, server = PushbackReader(MemoryStream(raw)), MemoryStream()
    try:
        request = await http1.read_request(reader)
        framing = request.framing()
        fields = [("Host", "example.org"), *request.end_to_end(without=("host", "expect"))]
        length: http1.RequestFraming | None = framing if request.has_length else None
        body = b""
        if explicit:
            if request.method not in http1.METHODS_WITH_BODY and framing != 0:
                return None
            body = b"".join([piece async for piece in http1.read_body(reader, framing)])
            length = len(body)
        exchange = HttpExchange(server, PushbackReader(server), request.method, request.target, fields, length)
    except FreeholdError:
        return None
    sent = list(fields)
    if length is not None:
        sent.append(("Transfer-Encoding", "chunked") if length == "chunked" else ("Content-Length", str(length)))
    try:
        if explicit:
            await exchange.send_whole(body)
        else:
            copy = PushbackReader(MemoryStream(raw))
            await http1.read_request(copy)
            await exchange.send(http1.read_body(reader, framing))
            body = b"".join([piece async for piece in http1.read_body(copy, framing)])
    except FreeholdError:
        return ForwardedRequest(server.written, None)
    found = tuple(sorted((name.lower(), value.encode("latin-1").strip(b" \t")) for name, value in sent))
    return ForwardedRequest(server.written, ObservedRequest(request.method, request.target, body, found))


async def check_against(servers: list[RealServer], raw: bytes, *, explicit: bool) -> bool:
    """Every server must see exactly the request that was meant and then the next one. True when it was forwarded."""
    forwarded = await forward(raw, explicit=explicit)
    if forwarded is None:
        return False
    for server in servers:
        if forwarded.meant is None:
            seen = await server.read(forwarded.written, ends=True)
            assert seen == [], (server.name, raw, forwarded.written, seen)
            continue
        seen = await server.read(forwarded.written + NEXT, ends=False)
        if forwarded.meant.method not in _METHODS and seen == []:
            continue  # Node knows a fixed list of methods and refuses the others
        assert seen[:1] == [forwarded.meant], (server.name, raw, forwarded.written, seen)
        assert [(each.method, each.target, each.body) for each in seen[1:]] == [("GET", "/next", b"")], (
            server.name,
            raw,
            forwarded.written,
            seen,
        )
    return True
