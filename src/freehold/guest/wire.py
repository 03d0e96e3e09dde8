"""The link's frames, as the guest sees them. `freehold.computer.frames` is the host's own reading of the same page.

A link opens with sixteen bytes from each side naming the version. Then frames: length of the payload (u32), kind (u8),
channel (u32), payload. The host opens odd channels, the guest even ones; a channel is over when the guest closes it, of its own accord or asked by
the host's close.
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
    """The other side broke the protocol; the link is cut."""


def frame(kind: int, channel: int, payload: bytes = b"") -> bytes:
    return HEADER.pack(len(payload), kind, channel) + payload
