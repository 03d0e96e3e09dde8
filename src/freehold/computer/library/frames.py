"""The frames of a link, as the host encodes and decodes them. Every byte from the guest may be hostile.

`freehold.guest.wire` has the guest's copy of this protocol; tests/guest/test_protocol.py compares the two.
"""

import json
import mmap
import struct
from _json import encode_basestring_ascii, make_encoder, make_scanner
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
        f"The computer sent invalid data on the link: {what}",
        hint="If this happens again, stop the computer and look at its log",
    )


def busy_error(what: str) -> FreeholdError:
    return FreeholdError(
        "computer.busy", f"The computer is too busy for this request: {what}", hint="Try again in a moment"
    )


def encode_frame(kind: int, channel: int, payload: bytes = b"") -> bytes:
    return HEADER.pack(len(payload), kind, channel) + payload


def encode_message(message: dict[str, Any]) -> bytes:
    payload = "".join(_encode(message, 0)).encode("ascii")
    if len(payload) > MAX_PAYLOAD:
        raise FreeholdError(
            "computer.too-large", f"A request of {len(payload)} bytes is too large for the link (at most {MAX_PAYLOAD})"
        )
    return payload


def decode_message(payload: bytes) -> dict[str, Any]:
    """Decode a JSON object. Invalid bytes raise `link.protocol` and nothing else."""
    try:
        text = payload.decode("ascii")
        value, end = _scan(text, 0)
    except (ValueError, RecursionError, StopIteration):
        raise protocol_error("a message that is not JSON") from None
    if end != len(text):
        raise protocol_error("more than one message in a frame")
    if not isinstance(value, dict):
        raise protocol_error("a message that is not an object")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _refuse_value(value: object) -> NoReturn:
    raise TypeError(f"{type(value).__name__} has no JSON form")


# Made once: `json.dumps` makes a new one for every message, and `json.loads` looks for spaces around it.
_encode = make_encoder(None, _refuse_value, encode_basestring_ascii, None, ":", ",", False, False, True)
_scan = make_scanner(json.JSONDecoder(parse_constant=_refuse_constant))  # type: ignore[arg-type]  # the stubs name another class


class FrameDecoder:
    """Turns bytes into frames. Its buffer holds two frames of the largest size.

    Fill `room()`, then read the frames from `advance(size)`. Raises `link.version` for another version of the preamble
    and `link.protocol` for anything else that is invalid; after that it cannot be used.
    """

    def __init__(self) -> None:
        # A mapping takes memory only as far as it has been filled, which on an idle link is one page.
        self._view = memoryview(mmap.mmap(-1, _BUFFER, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        self._end = 0
        self.greeted = False

    def room(self) -> memoryview:
        return self._view[self._end :]

    def advance(self, size: int) -> Iterator[tuple[int, int, memoryview]]:
        """Kind, channel and payload of every complete frame. A payload is valid until the next frame is read.

        Read all frames before you fill `room` again.
        """
        self._end += size
        view, end, at = self._view, self._end, 0
        if not self.greeted:
            if end < len(PREAMBLE):
                return
            self._check_preamble(bytes(view[: len(PREAMBLE)]))
            at = len(PREAMBLE)
        while end - at >= HEADER.size:
            length, kind, channel = HEADER.unpack_from(view, at)
            if length > MAX_PAYLOAD:
                raise protocol_error(f"a frame of {length} bytes (at most {MAX_PAYLOAD})")
            if not OPEN <= kind <= PONG:
                raise protocol_error(f"a frame of unknown kind {kind}")
            start = at + HEADER.size
            if end - start < length:
                break
            at = start + length
            yield kind, channel, view[start:at]
        if at:
            view[: end - at] = view[at:end]
            self._end = end - at

    def feed(self, data: bytes) -> Iterator[tuple[int, int, bytes]]:
        """Decode any number of bytes; the payloads are copies."""
        rest = memoryview(data)
        while rest:
            room = self.room()
            size = min(len(room), len(rest))
            room[:size] = rest[:size]
            rest = rest[size:]
            for kind, channel, payload in self.advance(size):
                yield kind, channel, bytes(payload)

    def _check_preamble(self, words: bytes) -> None:
        if words != PREAMBLE:
            stem = PREAMBLE[: PREAMBLE.index(b" ")]
            if words.startswith(stem):
                raise FreeholdError(
                    "link.version",
                    f"The computer uses version {words[-2:]!r} of the link, this program uses {PREAMBLE[-2:]!r}",
                    hint="Restart the computer, so that both have the same version of Freehold",
                )
            raise protocol_error("the preamble is wrong")
        self.greeted = True
