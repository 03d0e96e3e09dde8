"""Until when neighbours have signed ahead of our clock, kept over a restart: such a request must not work again then."""

import sqlite3
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.home import ensure_private_folder
from freehold.mesh.http_signature import WINDOW

MAX_AHEAD = 600
"""What is further ahead at the start was noted before the clock of this machine was set back. It is forgotten then:
otherwise the neighbour would be refused until that time."""


class AheadTimes:
    """A neighbour whose clock is not ahead is never stored. Not for several threads, but `load` may be in another one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database: sqlite3.Connection | None = None
        self._former: dict[str, int] = {}
        self._noted: dict[str, int] = {}

    def load(self, now: float) -> None:
        """Blocks. What is long over is forgotten."""
        ensure_private_folder(self._path.parent)
        database = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        database.execute("PRAGMA journal_mode = WAL").fetchall()
        # No write waits for the disk: what a killed process has written is there.
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute("CREATE TABLE IF NOT EXISTS ahead (pubkey TEXT PRIMARY KEY, at INTEGER NOT NULL) STRICT")
        # The start was a moment ago, so what is over since then still counts.
        kept = (int(now - WINDOW), int(now + MAX_AHEAD))
        database.execute("DELETE FROM ahead WHERE at NOT BETWEEN ? AND ?", kept)
        self._former = dict(database.execute("SELECT pubkey, at FROM ahead"))
        self._database = database

    def close(self) -> None:
        """Idempotent."""
        database, self._database = self._database, None
        if database is not None:
            database.close()

    def was_used(self, pubkey: str, at: int) -> bool:
        """Whether a request of this moment may be one that was received before the start."""
        return at <= self._former.get(pubkey, 0)

    def note(self, pubkey: str, at: int, now: float) -> None:
        """A request of this moment is used. At most one write a second for each neighbour. Raises `mesh.busy`."""
        if at <= max(int(now), self._noted.get(pubkey, 0)):
            return
        if self._database is None:
            raise FreeholdError("mesh.busy", "Freehold is stopping")
        self._database.execute("INSERT OR REPLACE INTO ahead (pubkey, at) VALUES (?, ?)", (pubkey, at))
        self._noted[pubkey] = at
