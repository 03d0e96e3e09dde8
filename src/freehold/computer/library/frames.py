"""The link's frames as the host reads them: every byte from the guest is taken for hostile.

`freehold.guest.wire` is the guest's reading of the same page; a test holds the two together.
"""

import json
import struct
from collections.abc import Iterator
from typing import Any, NoReturn

from freehold.errors import FreeholdError

PREAMBLE = b"freehold-link 01"
HEADER = struct.Struct("<IBI")
CREDIT = struct.Struct("<BI")
MAX_PAYLOAD = 256 * 1024
WINDOW = 256 * 1024
"""Bytes that a side may send on each stream of a channel before the first credit."""
MAX_WINDOW = 4 * 1024 * 1024

OPEN, DATA, SIDE, END, GRANT, MESSAGE, CLOSE, PING, PONG = range(1, 10)
"""DATA is a channel's stream 0 (stdin, stdout, contents), SIDE its stream 1 (stderr, records)."""

_BUFFER = 2 * (MAX_PAYLOAD + HEADER.size)


def protocol_error(what: str) -> FreeholdError:
    return FreeholdError(
        "link.protocol",
        f"The computer broke the link's protocol: {what}",
        hint="The link was cut; a computer that does this again should be stopped and looked at",
    )


def encode_frame(kind: int, channel: int, payload: bytes = b"") -> bytes:
    return HEADER.pack(len(payload), kind, channel) + payload


def encode_message(message: dict[str, Any]) -> bytes:
    payload = json.dumps(message, separators=(",", ":")).encode("ascii")
    if len(payload) > MAX_PAYLOAD:
        raise FreeholdError(
            "computer.too-large", f"A request of {len(payload)} bytes is more than the link carries ({MAX_PAYLOAD})"
        )
    return payload


def decode_message(payload: bytes) -> dict[str, Any]:
    """A JSON object, or a protocol error: never another exception, whatever the bytes."""
    try:
        value = json.loads(payload.decode("ascii"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise protocol_error("a message that is not JSON") from None
    if not isinstance(value, dict):
        raise protocol_error("a message that is not an object")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


class Decoder:
    """Bytes into frames, holding at most one frame and a socket's worth more.

    Fill `room()`, then take the frames from `advance(size)`. Raises `link.protocol`, after which it is spent,
    or `link.version` when the other side's first words are of another version.
    """

    def __init__(self) -> None:
        self._buffer = bytearray(_BUFFER)
        self._view = memoryview(self._buffer)
        self._end = 0
        self.greeted = False

    def room(self) -> memoryview:
        return self._view[self._end :]

    def advance(self, size: int) -> Iterator[tuple[int, int, memoryview]]:
        """Kind, channel and payload of every whole frame. A payload holds until the next is asked for.

        Exhaust the iterator before filling `room` again.
        """
        self._end += size
        view, end, at = self._view, self._end, 0
        if not self.greeted:
            if end < len(PREAMBLE):
                return
            self._greet(bytes(view[: len(PREAMBLE)]))
            at = len(PREAMBLE)
        while end - at >= HEADER.size:
            length, kind, channel = HEADER.unpack_from(view, at)
            if length > MAX_PAYLOAD:
                raise protocol_error(f"a frame of {length} bytes, where {MAX_PAYLOAD} is the most")
            if not OPEN <= kind <= PONG:
                raise protocol_error(f"a frame of the unknown kind {kind}")
            start = at + HEADER.size
            if end - start < length:
                break
            at = start + length
            yield kind, channel, view[start:at]
        if at:
            view[: end - at] = view[at:end]
            self._end = end - at

    def feed(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """The same for bytes at hand, however many; these payloads are copies."""
        rest = memoryview(data)
        while rest:
            room = self.room()
            size = min(len(room), len(rest))
            room[:size] = rest[:size]
            rest = rest[size:]
            for kind, channel, payload in self.advance(size):
                yield kind, channel, bytes(payload)

    def _greet(self, words: bytes) -> None:
        if words != PREAMBLE:
            stem = PREAMBLE[: PREAMBLE.index(b" ")]
            if words.startswith(stem):
                raise FreeholdError(
                    "link.version",
                    f"The computer speaks version {words[-2:]!r} of the link and this program {PREAMBLE[-2:]!r}",
                    hint="Restart the computer, so that both come from the same Freehold",
                )
            raise protocol_error("it does not begin as a link")
        self.greeted = True
