"""Compares the states of two entries: path by path and line by line."""

import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from freehold.history.diff import FileDiff, diff_change
from freehold.history.entries import EntryLog, EntryWriter
from freehold.history.model import EntryRecord, PathChange
from freehold.history.names import find_path
from freehold.history.states import Places

DIFF_SECONDS = 5.0
MAX_COUNTED_PATHS = 500


class Comparison:
    """Reads through `db` under `reading`. `entries` writes line counts under `lock`; `read` returns a stored content."""

    def __init__(
        self,
        db: sqlite3.Connection,
        reading: threading.RLock,
        entries: EntryWriter,
        lock: threading.RLock,
        roots: Mapping[bytes, Path],
        read: Callable[[int], bytes],
    ) -> None:
        self._db = db
        self._reading = reading
        self._entries = entries
        self._lock = lock
        self._roots = roots
        self._read = read

    def list_changes(self, entry: int) -> list[PathChange]:
        """The changes of an entry, against the entry before it (for the oldest entry, against nothing)."""
        with self._reading:
            log = EntryLog(self._db)
            log.get(entry)
            return Places(self._db).list_changes(log.before(entry) or 0, entry)

    def compare(
        self, old: int, new: int, path: str | None, limit: int, seconds: float, skip: int = 0
    ) -> tuple[list[FileDiff], int]:
        """The differences between the states of two entries, in either direction; 0 is the state before the first entry."""
        with self._reading:
            for entry in (old, new):
                if entry:
                    EntryLog(self._db).get(entry)
            changes = Places(self._db).list_changes(old, new)
        return self.diff_changes(changes, path, limit, seconds, skip)

    def diff_changes(
        self, changes: Sequence[PathChange], path: str | None, limit: int, seconds: float, skip: int = 0
    ) -> tuple[list[FileDiff], int]:
        """At most `limit` diffs after the first `skip` paths, made in at most `seconds`, and the number of all changed paths."""
        prefix = find_path(path, self._roots) if path is not None else ()
        changes = [change for change in changes if not change.is_only_time]
        changes = [change for change in changes if tuple(change.path.split(b"/"))[: len(prefix)] == prefix]
        deadline = time.monotonic() + seconds
        found: list[FileDiff] = []
        for change in changes[skip : skip + limit]:
            if time.monotonic() > deadline:
                break
            found.append(diff_change(change, self._read))
        return found, len(changes)

    def count_lines(self, entry: EntryRecord, seconds: float) -> EntryRecord:
        """The entry with its line counts, which are then stored. Unchanged when it has too many paths or time runs out."""
        if entry.added + entry.changed + entry.removed > MAX_COUNTED_PATHS:
            return entry
        diffs, total = self.diff_changes(self.list_changes(entry.id), None, MAX_COUNTED_PATHS, seconds)
        if len(diffs) < total:
            return entry
        added, removed = sum(each.added or 0 for each in diffs), sum(each.removed or 0 for each in diffs)
        if self._lock.acquire(blocking=False):
            try:
                with suppress(sqlite3.OperationalError):  # the disk is full; they are counted again later
                    self._entries.set_lines(entry.id, added, removed)
            finally:
                self._lock.release()
        return replace(entry, lines_added=added, lines_removed=removed)
