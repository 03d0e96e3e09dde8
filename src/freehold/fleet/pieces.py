"""What one link is on a connection between head and node: pieces with a length, and an end.

Whatever a client or a guest says is inside of a piece, so that it cannot be taken for the end. Behind the end the same
connection can carry another link.
"""

import struct
from collections.abc import Iterator

from freehold.errors import FreeholdError
from freehold.fleet.wire import PIECE

LENGTH = struct.Struct("!I")
END = LENGTH.pack(0)


class PieceReader:
    """`split` the bytes as they come. When `is_ended`, `rest` is what came behind the end."""

    def __init__(self) -> None:
        self._length = b""
        self._left = 0
        self.is_ended = False
        self.rest = b""

    def split(self, data: memoryview) -> Iterator[memoryview]:
        """Parts of what the pieces hold, as long as `data` is valid. Raises `fleet.bad-message`."""
        at = 0
        while at < len(data):
            if self.is_ended:
                self.rest += data[at:]
                return
            if self._left:
                part = data[at : at + self._left]
                at += len(part)
                self._left -= len(part)
                yield part
            else:
                missing = LENGTH.size - len(self._length)
                self._length += data[at : at + missing]
                at += missing
                if len(self._length) == LENGTH.size:
                    self._begin_piece()

    def _begin_piece(self) -> None:
        (self._left,) = LENGTH.unpack(self._length)
        self._length = b""
        self.is_ended = not self._left
        if self._left > PIECE:
            raise FreeholdError("fleet.bad-message", f"A piece of {self._left} bytes is longer than {PIECE}")
