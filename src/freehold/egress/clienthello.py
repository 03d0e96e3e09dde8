"""Reads the server name from the first message of TLS.

With Encrypted ClientHello the outer name counts: it is the name that the network sees. GREASE and unknown extensions are
skipped. A message that could be read in two ways is refused.
"""

from dataclasses import dataclass

from freehold.errors import FreeholdError

HELLO_LIMIT = 32 * 1024
MAX_RECORDS = 32
_HANDSHAKE = 22
_CLIENT_HELLO = 1
_SERVER_NAME = 0
_HOST_NAME = 0
_RECORD_LIMIT = 16384


@dataclass(frozen=True)
class ClientHello:
    server_name: str | None


class _Reader:
    """Reads length-prefixed parts of a buffer. Refuses a part that is too short."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        piece = self._data[self._at : self._at + count]
        if len(piece) != count:
            raise not_a_hello("a length goes beyond its end")
        self._at += count
        return piece

    def vector(self, width: int) -> "_Reader":
        return _Reader(self.take(int.from_bytes(self.take(width))))

    @property
    def left(self) -> int:
        return len(self._data) - self._at


def not_a_hello(why: str) -> FreeholdError:
    return FreeholdError("egress.not-tls", f"The first bytes are not a TLS ClientHello: {why}")


def looks_like_tls(data: bytes) -> bool:
    """Whether the first byte can begin a TLS record."""
    return data[:1] == b"\x16"


def read_client_hello(data: bytes) -> ClientHello | int:
    """The ClientHello at the start of `data`, or the least number of bytes needed. Raises `egress.not-tls`."""
    message = b""
    at = 0
    for _ in range(MAX_RECORDS):
        header = data[at : at + 5]
        if header[:1] not in (b"", b"\x16") or header[1:2] not in (b"", b"\x03"):
            raise not_a_hello("it is another kind of record")
        if len(header) < 5:
            return at + 5
        length = int.from_bytes(header[3:5])
        if not 0 < length <= _RECORD_LIMIT:
            raise not_a_hello("a record has an impossible length")
        message += data[at + 5 : at + 5 + length]
        at += 5 + length
        if message and message[0] != _CLIENT_HELLO:
            raise not_a_hello("it is another handshake message")
        wanted = 4 + int.from_bytes(message[1:4]) if len(message) >= 4 else HELLO_LIMIT
        if wanted > HELLO_LIMIT:
            raise not_a_hello(f"it is longer than {HELLO_LIMIT} bytes")
        if at > len(data):
            return at
        if len(message) > wanted:
            raise not_a_hello("its record holds more than one message")
        if len(message) == wanted:
            return _parse(message[4:])
    raise not_a_hello(f"it has more than {MAX_RECORDS} records")


def _parse(body: bytes) -> ClientHello:
    hello = _Reader(body)
    if hello.take(2)[:1] != b"\x03":
        raise not_a_hello("its version is not TLS")
    hello.take(32)
    hello.vector(1)
    hello.vector(2)
    hello.vector(1)
    if not hello.left:
        return ClientHello(None)
    extensions = hello.vector(2)
    if hello.left:
        raise not_a_hello("bytes follow its extensions")
    seen: set[int] = set()
    name: str | None = None
    while extensions.left:
        kind = int.from_bytes(extensions.take(2))
        content = extensions.vector(2)
        if kind in seen:
            raise not_a_hello("it repeats an extension")
        seen.add(kind)
        if kind == _SERVER_NAME:
            name = _server_name(content)
    return ClientHello(name)


def _server_name(content: _Reader) -> str:
    names = content.vector(2)
    kind = names.take(1)[0]
    name = names.vector(2)
    if kind != _HOST_NAME or names.left or content.left:
        raise not_a_hello("its server name is not exactly one host name")
    try:
        return name.take(name.left).decode("ascii")
    except UnicodeDecodeError as error:
        raise not_a_hello("its server name is not ASCII") from error
