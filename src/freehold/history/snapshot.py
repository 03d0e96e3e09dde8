"""The one place where entries come to be: drain the watcher, take what changed, complete the entry, or leave no trace."""

import errno
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.history.contents import Contents, StoreFailed
from freehold.history.database import drop_half_taken, use_reserve
from freehold.history.entries import EntryWriter
from freehold.history.ignoring import Ignored
from freehold.history.model import Kind, Mark, Who
from freehold.history.reading import Limits, Taken
from freehold.history.states import Places
from freehold.history.taking import Take
from freehold.history.watching import Watcher

NamePath = tuple[bytes, ...]

_LARGE = 2 << 20


class Snapshots:
    """Used under the caller's lock."""

    def __init__(
        self,
        db: sqlite3.Connection,
        contents: Contents,
        roots: Mapping[bytes, Path],
        *,
        largest: int,
        reserve: Path,
        ignored: Ignored | None,
    ) -> None:
        self._db = db
        self._contents = contents
        self._roots = roots
        self._largest = largest
        self._entries = EntryWriter(db)
        self._half_taken = False
        self._reserve = reserve
        self._ignored = ignored
        self.watcher: Watcher | None = None
        self.room: Callable[[], int] = lambda: 1 << 62

    def take(
        self,
        kind: Kind,
        who: Who,
        why: str,
        *,
        always: bool = False,
        only: Iterable[NamePath] | None = None,
        trusted: Mapping[int, Taken] | None = None,
        complete: Callable[[int], None] = lambda entry: None,
    ) -> Mark:
        """Bring the store up to what the tree is now. An entry is made when something differs, or `always`.

        `only` limits the look to these paths when there is no watcher to tell what is dirty; `complete` runs in the
        transaction that makes the entry visible. On failure the previous state is intact and everything is looked at again.
        """
        if self._half_taken:
            drop_half_taken(self._db)
            self._half_taken = False
        entry = self._entries.newest() + 1
        try:
            return self._take(entry, kind, who, why, always, only, trusted, complete)
        except BaseException as error:
            self._undo_transaction()
            if self.watcher is not None:
                self.watcher.doubt("the last snapshot failed")
            cause = error.__cause__ if isinstance(error, StoreFailed) else error
            if isinstance(cause, sqlite3.OperationalError | OSError):
                raise explained(cause) from error
            raise

    def _take(
        self,
        entry: int,
        kind: Kind,
        who: Who,
        why: str,
        always: bool,
        only: Iterable[NamePath] | None,
        trusted: Mapping[int, Taken] | None,
        complete: Callable[[int], None],
    ) -> Mark:
        begun = False

        def begin() -> None:
            nonlocal begun
            if not begun:
                self._entries.begin(entry, time.time(), kind, who, why)
                begun = True

        def save() -> None:
            begin()
            self._contents.sync()
            self._half_taken = True
            self._db.execute("COMMIT")
            self._db.execute("BEGIN IMMEDIATE")

        dirty = self.watcher.drain() if self.watcher is not None else None
        self._db.execute("BEGIN IMMEDIATE")
        self._contents.written_bytes = 0
        limits = Limits(self._largest, self.room())
        if trusted and dirty is not None:
            trusted = self._untouched(trusted, dirty.written)
        looking = Take(self._db, self._contents, self._roots, entry, limits, trusted, save, self._ignored)
        if dirty is not None and dirty.everything is None:
            paths = (
                dict.fromkeys(dirty.paths, False) | dict.fromkeys(only or (), False) | dict.fromkeys(dirty.deep, True)
            )
            looking.visit(paths.items())
        elif dirty is None and only is not None:
            looking.visit((path, False) for path in only)
        else:
            looking.scan()
        made = looking.differs or always
        if made:
            begin()
            self._entries.complete(entry, (looking.added, looking.changed, looking.removed), looking.notes)
            complete(entry)
        elif begun:
            self._entries.forget(entry)
        self._contents.sync()
        self._db.execute("COMMIT")
        self._half_taken = False
        if self._contents.written_bytes > _LARGE:
            # Now, while it is long anyway: else the next small snapshots would each carry over a part of the journal.
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return Mark(entry if made else entry - 1, made)

    def _untouched(self, trusted: Mapping[int, Taken], written: frozenset[NamePath] | None) -> dict[int, Taken]:
        """Of what a restore wrote, that which nobody has written to since."""
        if written is None:
            return {}
        places = Places(self._db)
        touched = {places.find(path) for path in written}
        return {place: taken for place, taken in trusted.items() if place not in touched}

    def _undo_transaction(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        self._contents.reload()
        use_reserve(self._db, self._reserve)
        if self._half_taken:
            try:
                drop_half_taken(self._db)
            except sqlite3.Error:
                return  # no room even for that: tried again before the next snapshot, and at the next open
            self._half_taken = False


def explained(error: sqlite3.OperationalError | OSError) -> FreeholdError:
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    if full or "disk is full" in str(error):
        return FreeholdError(
            "history.disk-full",
            "The disk is full: this state could not be taken into history; everything taken before is intact",
            hint="Make room on the disk, or lower history.quota and run: freehold history collect",
        )
    return FreeholdError(
        "history.store-failed",
        f"This state could not be taken into history: {error}; everything taken before is intact",
        hint="freehold history verify says whether the store itself is damaged",
    )
