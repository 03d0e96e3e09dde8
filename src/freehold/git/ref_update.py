"""What a push asks a server to do, read from the beginning of its request."""

import re
from dataclasses import dataclass

from freehold.errors import FreeholdError

MAX_LINES = 64
MAX_LINE = 65_520
_COMMAND = re.compile(rb"[0-9a-f]{40,64} ([0-9a-f]{40,64}) (refs/[^\0\n ]+)(?:\0[^\n]*)?\n?")
FLUSH = b"0000"


@dataclass(frozen=True)
class RefUpdate:
    """The one thing that a push may do: let a branch be that commit."""

    commit: str
    branch: str


class RefUpdateCheck:
    """Reads one push as it arrives. It lets through exactly one update.

    Whoever else could reach the relay while it is open can only do again what the owner asked for.
    """

    def __init__(self, update: RefUpdate) -> None:
        self._wanted = (update.commit.encode(), f"refs/heads/{update.branch}".encode())
        self._held = b""
        self._at = 0
        """How much of `_held` was read."""
        self._lines = 0
        self._updates = 0
        self.is_checked = False

    def receive(self, data: bytes) -> bytes:
        """The bytes that may be sent on. Raises `git.refused`."""
        if self.is_checked:
            return data
        self._held += data
        while len(self._held) - self._at >= 4:
            size = self._read_size(self._held[self._at : self._at + 4])
            if size == 0:
                return self._finish()
            if len(self._held) - self._at < size:
                break
            self._check_line(self._held[self._at + 4 : self._at + size])
            self._at += size
        return b""

    def _finish(self) -> bytes:
        """The list of updates has ended. A probe, which has none, may not be followed by anything."""
        if self._updates != 1 and self._held != FLUSH:
            raise _refused()
        self.is_checked = self._updates == 1
        done, self._held = self._held, b"" if self.is_checked else self._held
        return done

    def _read_size(self, digits: bytes) -> int:
        try:
            size = int(digits, 16)
        except ValueError:
            raise _refused() from None
        if size in (1, 2, 3, 4) or size > MAX_LINE:
            raise _refused()
        return size

    def _check_line(self, line: bytes) -> None:
        self._lines += 1
        match = _COMMAND.fullmatch(line)
        if self._lines > MAX_LINES or (match is None and not line.startswith(b"shallow ")):
            raise _refused()
        if match is not None:
            self._updates += 1
            if (match[1], match[2]) != self._wanted:
                raise _refused()


def _refused() -> FreeholdError:
    return FreeholdError("git.refused", "This push does something else than the owner asked for")
