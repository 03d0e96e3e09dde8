"""The frames of a link, as the guest encodes and decodes them. `freehold.computer.library.frames` is the copy of the host.

A link begins with sixteen bytes from each side naming the version. Then frames: length of the payload (u32), kind (u8),
channel (u32), payload. The host opens odd channels, the guest even ones. A channel ends when the guest closes it, which
it also does after the host's close.
"""

from _struct import Struct

PREAMBLE = b"freehold-link 01"
HEADER = Struct("<IBI")
CREDIT = Struct("<BI")
MAX_PAYLOAD = 256 * 1024
WINDOW = 256 * 1024
"""Bytes that a side may send on each stream of a channel before the first credit."""
MAX_WINDOW = 4 * 1024 * 1024

OPEN, DATA, SIDE, END, GRANT, MESSAGE, CLOSE, PING, PONG = range(1, 10)
"""DATA is a channel's stream 0 (stdin, stdout, contents), SIDE its stream 1 (stderr, records)."""


class WireError(Exception):
    """The host sent invalid data; the link is closed."""


def encode_frame(kind: int, channel: int, payload: bytes = b"") -> bytes:
    return HEADER.pack(len(payload), kind, channel) + payload
