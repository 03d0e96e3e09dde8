"""Garbage collection: thins old entries, drops the oldest ones, and removes what nothing refers to.

It works in small transactions. If the process is killed, the next run continues.
"""

import sqlite3
import threading
import time

from freehold.history.contents import ContentStore
from freehold.history.database import transaction
from freehold.history.entries import EntryWriter
from freehold.history.model import StoreSize

DAY, HOUR, WEEK = 86_400.0, 3600.0, 7 * 86_400.0
_BATCH = 500
_TARGET_SHARE = 0.9  # of the quota, so that the next snapshot does not exceed it again
_COPIED = "SELECT base FROM working_copy UNION SELECT base FROM change_set WHERE merged IS NULL"


class GarbageCollector:
    """Holds `lock` for one small transaction at a time, so that snapshots never wait long."""

    def __init__(self, db: sqlite3.Connection, lock: threading.RLock, contents: ContentStore) -> None:
        self._db = db
        self._lock = lock
        self._contents = contents
        self._entries = EntryWriter(db)

    def measure_used(self) -> int:
        with self._lock:
            pages, free, page = (
                self._db.execute(f"PRAGMA {what}").fetchone()[0]
                for what in ("page_count", "freelist_count", "page_size")
            )
            return int((pages - free) * page) + self._contents.measure_chunks()

    def measure_size(self, quota: int, set_aside: int) -> StoreSize:
        with self._lock:
            entries = self._db.execute("SELECT count(*) FROM entry WHERE complete = 1").fetchone()[0]
            contents, kept = self._db.execute("SELECT count(*), coalesce(sum(size), 0) FROM content").fetchone()
            return StoreSize(self.measure_used(), quota, entries, contents, kept, set_aside)

    def find_protected(self) -> set[int]:
        """Entries that must not be dropped: the newest, the last known good, those of an interrupted restore and of working copies."""
        keep = {self._entries.newest()}
        good = self._db.execute("SELECT max(id) FROM entry WHERE good = 1 AND complete = 1").fetchone()[0]
        if good is not None:
            keep.add(good)
        interrupted = self._entries.read_intent()
        if interrupted is not None:
            keep.update((interrupted[0].before, interrupted[0].target))
        keep.update(row[0] for row in self._db.execute(_COPIED))
        return keep

    def thin_entries(self, now: float) -> int:
        """Keep all entries of the last day, one per hour for a week, one per day after that. Returns the number of dropped entries."""
        with self._lock:
            rows = self._db.execute("SELECT id, at FROM entry WHERE complete = 1 ORDER BY id DESC").fetchall()
            keep = self.find_protected()
        seen: set[tuple[str, int]] = set()
        dropped = 0
        for entry, at in rows:
            age = now - at
            if age < DAY:
                continue
            bucket = ("hour", int(at // HOUR)) if age < WEEK else ("day", int(at // DAY))
            if bucket in seen and entry not in keep:
                dropped += self.drop_entry(entry)
            seen.add(bucket)
        return dropped

    def drop_oldest(self, quota: int) -> int:
        """Drop entries until the store is well below the quota, or only protected entries are left."""
        dropped = 0
        while self.measure_used() > quota * _TARGET_SHARE:
            with self._lock:
                keep = self.find_protected()
                rows = self._db.execute("SELECT id FROM entry WHERE complete = 1 ORDER BY id").fetchall()
            some = [row[0] for row in rows if row[0] not in keep]
            if not some:
                break
            for entry in some[: max(1, len(some) // 10)]:
                dropped += self.drop_entry(entry)
            self.remove_unreferenced()
        return dropped

    def drop_entry(self, entry: int) -> bool:
        """Delete one entry and the versions that no other entry has. Not one that was copied a moment ago."""
        with self._lock:
            if (entry,) in self._db.execute(_COPIED).fetchall():
                return False
            before = self._entries.before(entry) or 0
            after = self._db.execute("SELECT min(id) FROM entry WHERE complete = 1 AND id > ?", (entry,)).fetchone()[0]
            with transaction(self._db):
                for table in ("version", "node_version"):
                    self._db.execute(
                        f"DELETE FROM {table} WHERE born > ? AND born <= ? AND died <= ?",  # noqa: S608
                        (before, entry, after or entry),
                    )
                self._db.execute("DELETE FROM entry WHERE id = ?", (entry,))
                self._db.execute("UPDATE entry SET equals = id WHERE equals = ?", (entry,))
                self._db.execute("UPDATE entry SET redo_to = NULL, redo_next = NULL WHERE redo_to = ?", (entry,))
                self._db.execute("UPDATE entry SET redo_next = NULL WHERE redo_next = ?", (entry,))
        return True

    def remove_unreferenced(self) -> None:
        """Delete contents, chunks and places that nothing refers to, and free the disk space."""
        self._in_batches(
            """SELECT id FROM content WHERE id NOT IN (SELECT content FROM version WHERE content IS NOT NULL)
            AND id NOT IN (SELECT content FROM node_version WHERE content IS NOT NULL)
            AND id NOT IN (SELECT content FROM set_change WHERE content IS NOT NULL)
            AND id NOT IN (SELECT old_content FROM set_change WHERE old_content IS NOT NULL) LIMIT ?""",
            ("DELETE FROM content WHERE id = ?", "DELETE FROM piece WHERE content = ?"),
        )
        self._in_batches(
            "SELECT id FROM place WHERE id NOT IN (SELECT place FROM version) AND id NOT IN (SELECT parent FROM place) LIMIT ?",
            ("DELETE FROM place WHERE id = ?",),
        )
        self._remove_chunks()
        self._remove_stray_files()
        while self._vacuum_some():
            time.sleep(0)
        with self._lock:
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _in_batches(self, find: str, deletes: tuple[str, ...]) -> None:
        """Find and delete under one lock: a snapshot in between could begin to refer to what was found."""
        while True:
            with self._lock, transaction(self._db):
                ids = self._db.execute(find, (_BATCH * 20,)).fetchall()
                for delete in deletes:
                    self._db.executemany(delete, ids)
            if not ids:
                return

    def _remove_chunks(self) -> None:
        removed = 1
        while removed:
            with self._lock:
                removed = self._contents.remove_chunks(_BATCH)

    def _remove_stray_files(self) -> None:
        """Delete the chunk files of snapshots that were never committed."""
        for folder in sorted(self._contents.folder.iterdir()):
            with self._lock:
                for path in folder.iterdir():
                    try:
                        digest = bytes.fromhex(folder.name + path.name)
                    except ValueError:
                        path.unlink(missing_ok=True)
                        continue
                    if self._db.execute("SELECT 1 FROM chunk WHERE hash = ?", (digest,)).fetchone() is None:
                        path.unlink(missing_ok=True)

    def _vacuum_some(self) -> bool:
        with self._lock:
            # `execute` would run it for one page only, whatever the number.
            self._db.executescript("PRAGMA incremental_vacuum(2000)")
            return int(self._db.execute("PRAGMA freelist_count").fetchone()[0]) > 0
