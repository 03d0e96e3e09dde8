"""Reads the log, the stored contents and the differences between entries. It never waits for a snapshot."""

import threading
import time
from collections.abc import Mapping
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.history.comparison import DIFF_SECONDS, Comparison
from freehold.history.contents import ContentReader
from freehold.history.database import open_reader
from freehold.history.diff import FileDiff
from freehold.history.entries import EntryLog, EntryWriter
from freehold.history.model import EntryRecord, HistoryNotice, PathChange, PathVersion
from freehold.history.names import find_path
from freehold.history.states import Places
from freehold.history.verification import VerificationResult, verify_store

LINE_COUNT_SECONDS = 0.1


class HistoryReader:
    """Thread-safe: it has a connection and a lock of its own. `entries` writes line counts while `lock` is free."""

    def __init__(self, folder: Path, roots: Mapping[bytes, Path], entries: EntryWriter, lock: threading.RLock) -> None:
        self._database = folder / "history.db"
        self._chunks = folder / "chunks"
        self.roots = roots
        self._reading = threading.RLock()
        self._reader_db = open_reader(self._database)
        self._comparison = Comparison(self._reader_db, self._reading, entries, lock, roots, self.read)
        self._counted = entries.newest()

    def entry(self, entry: int) -> EntryRecord:
        with self._reading:
            return EntryLog(self._reader_db).get(entry)

    def newest(self) -> int:
        with self._reading:
            return EntryLog(self._reader_db).newest()

    def log(self, path: str | None = None, *, limit: int = 50, before: int | None = None) -> list[EntryRecord]:
        """Newest first. With a path, only the entries that changed it or anything below it."""
        with self._reading:
            log = EntryLog(self._reader_db)
            found = log.page(limit, before) if path is None else log.find_touching(self._place(path), limit, before)
        deadline = time.monotonic() + LINE_COUNT_SECONDS
        return [
            entry if entry.lines_added is not None else self._comparison.count_lines(entry, deadline - time.monotonic())
            for entry in found
        ]

    def changes(self, entry: int) -> list[PathChange]:
        """The changes of an entry, against the entry before it (for the oldest entry, against nothing)."""
        return self._comparison.list_changes(entry)

    def diff(
        self, entry: int, path: str | None = None, *, limit: int = 1000, seconds: float = DIFF_SECONDS
    ) -> tuple[list[FileDiff], int]:
        """The changes of an entry, line by line: at most `limit` files and `seconds` of work, and the number of all files."""
        return self._comparison.diff_changes(self.changes(entry), path, limit, seconds)

    def compare(
        self,
        old: int,
        new: int,
        path: str | None = None,
        *,
        limit: int = 1000,
        skip: int = 0,
        seconds: float = DIFF_SECONDS,
    ) -> tuple[list[FileDiff], int]:
        """The differences between the states of two entries, in either direction; 0 is the state before the first entry."""
        return self._comparison.compare(old, new, path, limit, seconds, skip)

    def last_good(self) -> int:
        """The newest entry that is marked as known good. Raises `history.not-found` when there is none."""
        with self._reading:
            found = EntryLog(self._reader_db).last_good()
        if found is None:
            raise FreeholdError(
                "history.not-found",
                "No entry is marked as known good",
                hint="Mark one in the history of the control center",
            )
        return found

    def before(self, entry: int) -> int:
        """The entry just before this one; 0 when there is none."""
        with self._reading:
            return EntryLog(self._reader_db).before(entry) or 0

    def version(self, entry: int, path: str) -> PathVersion | None:
        with self._reading:
            EntryLog(self._reader_db).get(entry)
            place = Places(self._reader_db).find(find_path(path, self.roots))
            return Places(self._reader_db).at(place, entry) if place is not None else None

    def read(self, content: int) -> bytes:
        with self._reading:
            return ContentReader(self._reader_db, self._chunks).read(content)

    def read_range(self, content: int, offset: int, length: int) -> bytes:
        with self._reading:
            return ContentReader(self._reader_db, self._chunks).read_range(content, offset, length)

    def notices(self) -> list[HistoryNotice]:
        with self._reading:
            return EntryLog(self._reader_db).notices()

    def verify(self) -> VerificationResult:
        """Read and check everything in the store. It has its own connection, so nothing waits for it."""
        db = open_reader(self._database)
        try:
            return verify_store(db, self._chunks)
        finally:
            db.close()

    def count_lines(self) -> None:
        """A task of the maintenance thread: count the changed lines of new entries, before somebody asks for them."""
        with self._reading:
            entries = EntryLog(self._reader_db).page(20, None)
        for entry in reversed(entries):
            if entry.id > self._counted:
                self._comparison.count_lines(entry, DIFF_SECONDS)
                self._counted = entry.id

    def _place(self, path: str) -> int:
        place = Places(self._reader_db).find(find_path(path, self.roots))
        if place is None:
            raise FreeholdError(
                "history.unknown-path",
                f"No entry contains {path}",
                hint="freehold log lists the entries",
            )
        return place
