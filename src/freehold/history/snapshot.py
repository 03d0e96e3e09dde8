"""The snapshot: scan what changed, store it, and make an entry. This is the only place where entries are made."""

import errno
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.history.contents import ContentStore, StoreWriteError
from freehold.history.database import drop_incomplete_entries, shrink_journal
from freehold.history.entries import EntryWriter
from freehold.history.ignore_rules import IgnoreMatcher
from freehold.history.model import Author, EntryKind, SnapshotResult
from freehold.history.states import PlacePaths, Places
from freehold.history.tree_reader import SnapshotLimits, TrustedFiles, WrittenFile
from freehold.history.tree_scan import TreeScan
from freehold.history.watcher import Watcher

NamePath = tuple[bytes, ...]

NO_LIMIT = 1 << 62
STORE_ERRORS = frozenset({"history.disk-full", "history.store-failed"})
"""The codes of `explain_store_error`."""
_LARGE_SNAPSHOT_BYTES = 2 << 20
_MAX_RETRIED = 200


class SnapshotWriter:
    """The caller holds the lock of history. `watcher` is None when nothing watches; `room` returns the bytes that may be added."""

    def __init__(
        self,
        db: sqlite3.Connection,
        contents: ContentStore,
        roots: Mapping[bytes, Path],
        *,
        reserve: Path,
        ignored: IgnoreMatcher | None,
    ) -> None:
        self._db = db
        self._contents = contents
        self._roots = roots
        self._entries = EntryWriter(db)
        self._incomplete = False
        self._reserve = reserve
        self._ignored = ignored
        self.watcher: Watcher | None = None
        self.room: Callable[[], int] = lambda: NO_LIMIT
        self.unstored: list[str] = []
        """What the last snapshot could not store, and why."""
        self.flags: set[int] = set()

    def record_snapshot(
        self,
        kind: EntryKind,
        who: Author,
        why: str,
        *,
        always: bool = False,
        only: Iterable[NamePath] | None = None,
        written: TrustedFiles | None = None,
        rate: int = NO_LIMIT,
        rows_only: bool = False,
        complete: Callable[[int], None] = lambda entry: None,
    ) -> SnapshotResult:
        """Record the state of the folders now. An entry is made when something differs, or `always`.

        Without a watcher, `only` limits the scan to these paths. `written` says what a restore has just written; what
        others wrote to since is removed from it. `rate` is how many bytes the author may add; with `rows_only` no content is added at all. `complete` runs
        in the transaction that makes the entry visible. After a failure the previous entries are intact and the next
        snapshot scans everything.
        """
        if self._incomplete:
            drop_incomplete_entries(self._db)
            self._incomplete = False
        entry = self._entries.newest() + 1
        try:
            limits = SnapshotLimits(0 if rows_only else self.room(), rate)
            return self._record(entry, kind, who, why, always, only, limits, written or TrustedFiles({}, {}), complete)
        except BaseException as error:
            self._roll_back()
            if self.watcher is not None:
                self.watcher.require_full_scan("the last snapshot failed")
            cause = error.__cause__ if isinstance(error, StoreWriteError) else error
            if isinstance(cause, sqlite3.OperationalError | OSError):
                raise explain_store_error(cause) from error
            raise

    def _record(
        self,
        entry: int,
        kind: EntryKind,
        who: Author,
        why: str,
        always: bool,
        only: Iterable[NamePath] | None,
        limits: SnapshotLimits,
        written: TrustedFiles,
        complete: Callable[[int], None],
    ) -> SnapshotResult:
        begun = False

        def begin() -> None:
            nonlocal begun
            if not begun:
                self._entries.begin(entry, time.time(), kind, who, why)
                begun = True

        def save() -> None:
            begin()
            self._contents.sync()
            self._incomplete = True
            self._db.execute("COMMIT")
            self._db.execute("BEGIN IMMEDIATE")

        dirty = self.watcher.drain_events() if self.watcher is not None else None
        self._db.execute("BEGIN IMMEDIATE")
        self._contents.written_bytes = 0
        if written.files and dirty is not None:
            self._forget_touched(written.files, dirty.written)
        scan = TreeScan(
            self._db, self._contents, self._roots, entry, limits, written.files, save, self._ignored, written.nodes
        )
        if dirty is not None and dirty.everything is None:
            paths = dict.fromkeys([*self._list_unstored(), *dirty.paths, *(only or ())], False)
            scan.scan_paths((paths | dict.fromkeys(dirty.deep, True)).items())
        elif dirty is None and only is not None:
            scan.scan_paths((path, False) for path in only)
        else:
            scan.scan_all()
        found = scan.recorder
        self.unstored, self.flags = found.notes, found.flags
        made = found.differs or always
        if made:
            begin()
            self._entries.complete(entry, (found.added, found.changed, found.removed), found.notes)
            complete(entry)
        else:
            if found.has_times:
                found.move_times(entry - 1, self._entries.before(entry - 1) or 0)
            if begun:
                self._entries.delete(entry)
        self._contents.sync()
        self._db.execute("COMMIT")
        self._incomplete = False
        if self._contents.written_bytes > _LARGE_SNAPSHOT_BYTES:
            # Otherwise each of the next small snapshots would have to move a part of the large journal.
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return SnapshotResult(entry if made else entry - 1, made)

    @property
    def added_bytes(self) -> int:
        """How many bytes the last snapshot has added, about."""
        return self._contents.written_bytes

    def has_unstored(self) -> bool:
        """Whether something is listed that could not be stored."""
        return bool(Places(self._db).list_flagged(1))

    def _list_unstored(self) -> list[NamePath]:
        """Paths whose content could not be stored before: the reason may be gone."""
        places = Places(self._db)
        return [places.path(place) for place in places.list_flagged(_MAX_RETRIED)]

    def _forget_touched(self, trusted: dict[int, WrittenFile], written: frozenset[NamePath] | None) -> None:
        """Files of a restore that something has written to since. None: it may be any of them."""
        if written is None:
            trusted.clear()
            return
        paths = PlacePaths(self._db)
        for path in written:
            trusted.pop(paths.find(path) or 0, None)

    def _roll_back(self) -> None:
        if self._db.in_transaction:
            self._db.execute("ROLLBACK")
        self._contents.reload()
        shrink_journal(self._db, self._reserve)
        if self._incomplete:
            try:
                drop_incomplete_entries(self._db)
            except sqlite3.Error:
                return  # the disk is full; it is tried again before the next snapshot and at the next open
            self._incomplete = False


def explain_store_error(error: sqlite3.OperationalError | OSError) -> FreeholdError:
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
    if full or "disk is full" in str(error):
        return FreeholdError(
            "history.disk-full",
            "The disk is full, so this state was not recorded. Earlier entries are intact",
            hint="Free disk space, or lower history.quota and run: freehold history collect",
        )
    return FreeholdError(
        "history.store-failed",
        f"This state was not recorded: {error}. Earlier entries are intact",
        hint="To check the store for damage: freehold history verify",
    )
