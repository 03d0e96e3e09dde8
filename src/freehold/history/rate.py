"""How much one agent may add to history in an hour, so that it cannot push older entries out on purpose."""

import time
from collections import deque
from collections.abc import Callable

from freehold.history.model import Author, AuthorKind
from freehold.history.snapshot import NO_LIMIT

HOUR = 3600.0
_UNLIMITED: frozenset[AuthorKind] = frozenset({"owner", "terminal", "ssh"})


class AuthorRates:
    """Counts the bytes that each author has added in the last hour. The caller holds the lock.

    The owner, with a terminal or SSH, is not limited. Changes of unknown authors count together.
    """

    def __init__(self, read_limit: Callable[[], int], clock: Callable[[], float] = time.monotonic) -> None:
        self._read_limit = read_limit
        self._clock = clock
        self._added: dict[str, deque[tuple[float, int]]] = {}
        self._refused: set[str] = set()

    def measure_room(self, who: Author) -> int:
        """How many bytes this author may add now."""
        return NO_LIMIT if who.by in _UNLIMITED else max(0, self._read_limit() - self._count(who))

    def add(self, who: Author, size: int) -> None:
        if size and who.by not in _UNLIMITED:
            self._added.setdefault(_name(who), deque()).append((self._clock(), size))

    def note_refused(self, who: Author) -> None:
        """A file of this author was not stored because of the rate."""
        self._refused.add(_name(who))

    def is_exceeded(self, who: Author) -> bool:
        """Whether a file of this author was refused, and half of the rate is not free again since."""
        if _name(who) in self._refused and self.measure_room(who) >= self._read_limit() // 2:
            self._refused.discard(_name(who))
        return _name(who) in self._refused

    def describe(self, who: Author) -> str:
        """A sentence for the owner."""
        name = who.agent or "An agent" if who.by == "agent" else "Someone who is not known"
        session = f" (session {who.session})" if who.session else ""
        limit = self._read_limit()
        return (
            f"{name}{session} added {self._count(who):,} bytes to history within an hour; the limit is {limit:,}. "
            "What it writes now is listed but not stored until the hour is over. Everything recorded before can be undone"
        )

    def _count(self, who: Author) -> int:
        found = self._added.get(_name(who))
        if found is None:
            return 0
        while found and found[0][0] < self._clock() - HOUR:
            found.popleft()
        if not found:
            del self._added[_name(who)]
        return sum(size for _, size in found)


def _name(who: Author) -> str:
    return f"{who.by}:{who.session or who.agent or ''}"
