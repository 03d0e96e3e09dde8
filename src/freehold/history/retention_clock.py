"""The clock for the age of entries: the wall clock, protected against jumps."""

import sqlite3
import time
from collections.abc import Callable
from contextlib import suppress

from freehold.history.database import transaction

DAY = 86_400.0
_MAX_SPEED = 2.0


def read_boot_clock() -> float:
    """Seconds since boot, including sleep. This clock cannot be set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class RetentionClock:
    """If the wall clock jumps ahead, entries must not become old at once.

    This clock runs at most twice as fast as real time. A restart, whose length is unknown, counts as at most one day: a
    machine that was off for a month has caught up after a month.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        wall: Callable[[], float] = lambda: time.time(),
        real: Callable[[], float] = read_boot_clock,
    ) -> None:
        self._db = db
        self._wall = wall
        self._real = real
        row = db.execute("SELECT value FROM meta WHERE key = 'aged'").fetchone()
        wall_time = self._wall()
        self._now = wall_time if row is None else min(wall_time, float(row[0]) + DAY)
        self._real_then = real()

    @property
    def behind(self) -> float:
        """How many seconds the wall clock is ahead of this clock."""
        return self._wall() - self._now

    def advance(self) -> float:
        """The time now, stored for the next start. The caller holds the lock."""
        real = self._real()
        self._now = min(self._wall(), self._now + _MAX_SPEED * (real - self._real_then))
        self._real_then = real
        # On a full disk garbage collection frees space; it must not fail because this value cannot be stored.
        with suppress(sqlite3.OperationalError), transaction(self._db):
            self._db.execute("INSERT OR REPLACE INTO meta VALUES ('aged', ?)", (repr(self._now),))
        return self._now
