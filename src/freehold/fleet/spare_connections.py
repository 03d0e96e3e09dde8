"""Connections to one node that have carried a link to its end, for a moment: the next link needs no handshake.

The other end is the same node, which sees all of its computers. What a computer or its client has said on one link
cannot come to the next one (`pieces`), and a connection on which something came in between is not used again.
"""

import asyncio

from freehold.fleet.wire import Stream, read_now

SPARE_SECONDS = 5.0
MAX_SPARE = 32


class SpareConnections:
    def __init__(self) -> None:
        self._spare: list[tuple[Stream, asyncio.TimerHandle]] = []

    def __len__(self) -> int:
        return len(self._spare)

    def keep(self, stream: Stream) -> None:
        """Only what `carry_link` has found to be clean."""
        if len(self._spare) == MAX_SPARE:
            stream[1].transport.abort()
            return
        expiry = asyncio.get_running_loop().call_later(SPARE_SECONDS, self._expire, stream)
        self._spare.append((stream, expiry))

    def take(self) -> Stream | None:
        """The one that was used last, if there is one."""
        while self._spare:
            stream, expiry = self._spare.pop()
            expiry.cancel()
            if is_unused(stream):
                return stream
            stream[1].transport.abort()
        return None

    def close(self) -> None:
        """Idempotent."""
        for stream, expiry in self._spare:
            expiry.cancel()
            stream[1].transport.abort()
        self._spare.clear()

    def _expire(self, stream: Stream) -> None:
        self._spare = [one for one in self._spare if one[0] is not stream]
        stream[1].transport.abort()


def is_unused(stream: Stream) -> bool:
    """Whether nothing has come on it, not even its end."""
    return not stream[1].is_closing() and read_now(stream[0]) is None
