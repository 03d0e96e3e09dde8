"""The time by which entries grow old: the wall clock's, as far as it can be believed."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress

from freehold.history.database import transaction

DAY = 86_400.0
_CATCHING_UP = 2.0


def passed() -> float:
    """Seconds that really went by, a sleeping machine's too; nobody can set this clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Aging:
    """A clock that jumps ahead must not make a week's entries a year old in a moment.

    So this one never runs more than twice as fast as time really passes, and a restart, of which nobody knows how long
    it took, counts for a day at most: a machine that was off for a month has caught up after a month.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        wall: Callable[[], float] = lambda: time.time(),
        real: Callable[[], float] = passed,
    ) -> None:
        self._db = db
        self._wall = wall
        self._real = real
        row = db.execute("SELECT value FROM meta WHERE key = 'aged'").fetchone()
        believed = self._wall()
        self._at = believed if row is None else min(believed, float(row[0]) + DAY)
        self._then = real()

    @property
    def behind(self) -> float:
        """Seconds by which the wall clock is ahead of what is believed."""
        return self._wall() - self._at

    def advance(self) -> float:
        """What time it is for thinning, noted for the next start. Under the caller's lock."""
        real = self._real()
        self._at = min(self._wall(), self._at + _CATCHING_UP * (real - self._then))
        self._then = real
        # On a full disk collecting is what makes room: it must not fail for a note.
        with suppress(sqlite3.OperationalError), transaction(self._db):
            self._db.execute("INSERT OR REPLACE INTO meta VALUES ('aged', ?)", (repr(self._at),))
        return self._at
