"""Disk space for the journal of a restore, set aside before the first file changes.

SQLite appends to its journal (the `-wal` file) and needs no new space where that file is long enough already. So a
restore that begins can always be recorded, and on a full disk it does not begin.
"""

import errno
import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.history.database import JOURNAL_LIMIT, allocate_reserve

_FIXED_BYTES = 96 << 10
_PAGES_PER_STEP = 8
"""A version that ends, one that begins, and their indexes, each in a page of its own at worst."""
_BYTES_PER_STEP = 1 << 10
"""What the database itself grows by, about."""


class JournalSpace:
    """The caller holds the lock. `reserve` is a file of history that exists only to be deleted on a full disk."""

    def __init__(self, db: sqlite3.Connection, database: Path, reserve: Path) -> None:
        self._db = db
        self._journal = database.with_name(database.name + "-wal")
        self._reserve = reserve

    def take(self, steps: int) -> None:
        """Raises `history.disk-full` when there is no space to record this many steps."""
        page, pages = (self._db.execute(f"PRAGMA {what}").fetchone()[0] for what in ("page_size", "page_count"))
        # A page that many steps change is written once, or twice when it does not stay in memory.
        need = _FIXED_BYTES + page * min(steps * _PAGES_PER_STEP, 2 * pages) + steps * _BYTES_PER_STEP
        self._db.execute("PRAGMA journal_size_limit = -1")  # it would be cut to its usual length otherwise
        try:
            self._lengthen(need)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            self._reserve.unlink(missing_ok=True)
            try:
                self._lengthen(need)
            except OSError:
                self.give_back()
                raise refuse_restore(error) from error

    def give_back(self) -> None:
        """The restore has ended. Never raises."""
        with suppress(sqlite3.Error):
            self._db.execute(f"PRAGMA journal_size_limit = {JOURNAL_LIMIT}")
        allocate_reserve(self._reserve)

    def free_space(self) -> None:
        """Let go of the reserve, so that a rename on a full disk gets the little space that it needs."""
        with suppress(OSError):
            self._reserve.unlink()

    def _lengthen(self, need: int) -> None:
        # SQLite holds no lock on this file: to close a handle on it breaks nothing.
        handle = os.open(self._journal, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            length = os.fstat(handle).st_size
            os.posix_fallocate(handle, length, need)
        finally:
            os.close(handle)


def refuse_restore(error: Exception) -> FreeholdError:
    """The restore could not begin."""
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    if full or "disk is full" in str(error):
        return FreeholdError(
            "history.disk-full",
            "The disk is full. Nothing was changed",
            hint="Free disk space and try again. To free space that history uses: freehold history collect",
        )
    return FreeholdError(
        "history.store-failed",
        f"The history cannot be read or written: {error}. Nothing was changed",
        hint="To check the store for damage: freehold history verify",
    )
