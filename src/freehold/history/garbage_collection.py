"""Keeping the store bounded: thin old entries, drop the oldest when the quota asks for it, sweep what nothing refers to.

Everything happens in place and in small transactions; killed at any point, the next run goes on.
"""

import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from freehold.history.database import transaction
from freehold.history.entries import EntryWriter

DAY, HOUR, WEEK = 86_400.0, 3600.0, 7 * 86_400.0
_BATCH = 500
_TARGET = 0.9  # of the quota, so that not every snapshot collects again


@dataclass(frozen=True)
class Size:
    used: int
    quota: int
    entries: int
    contents: int
    kept_bytes: int
    """What the kept contents would take without compression and chunks."""


@dataclass(frozen=True)
class Collected:
    thinned: int
    dropped: int
    freed: int
    used: int
    quota: int
    waiting: bool
    """The quota is reached and the owner told; the oldest entries go at the next collection after the grace."""


class Collector:
    """`lock` is held for one small transaction at a time, so that a mark never waits long."""

    def __init__(self, db: sqlite3.Connection, lock: threading.RLock, chunks: Path) -> None:
        self._db = db
        self._lock = lock
        self._chunks = chunks
        self._entries = EntryWriter(db)

    def used(self) -> int:
        with self._lock:
            pages, free, page = (
                self._db.execute(f"PRAGMA {what}").fetchone()[0]
                for what in ("page_count", "freelist_count", "page_size")
            )
            chunks = self._db.execute("SELECT coalesce(sum(stored), 0) FROM chunk").fetchone()[0]
            return int((pages - free) * page + chunks)

    def size(self, quota: int) -> Size:
        with self._lock:
            entries = self._db.execute("SELECT count(*) FROM entry WHERE complete = 1").fetchone()[0]
            contents, kept = self._db.execute("SELECT count(*), coalesce(sum(size), 0) FROM content").fetchone()
            return Size(self.used(), quota, entries, contents, kept)

    def untouchable(self) -> set[int]:
        """The newest, the last known good, and both ends of a restore that never ended."""
        keep = {self._entries.newest()}
        good = self._db.execute("SELECT max(id) FROM entry WHERE good = 1 AND complete = 1").fetchone()[0]
        if good is not None:
            keep.add(good)
        interrupted = self._entries.interrupted()
        if interrupted is not None:
            keep.update((interrupted[0].before, interrupted[0].target))
        return keep

    def thin(self, now: float) -> int:
        """All of the last day, the last of each hour for a week, the last of each day after. Returns how many were dropped."""
        with self._lock:
            rows = self._db.execute("SELECT id, at FROM entry WHERE complete = 1 ORDER BY id DESC").fetchall()
            keep = self.untouchable()
        seen: set[tuple[str, int]] = set()
        dropped = 0
        for entry, at in rows:
            age = now - at
            if age < DAY:
                continue
            bucket = ("hour", int(at // HOUR)) if age < WEEK else ("day", int(at // DAY))
            if bucket in seen and entry not in keep:
                self.drop(entry)
                dropped += 1
            seen.add(bucket)
        return dropped

    def drop_oldest(self, quota: int) -> int:
        """Until the store is well below the quota, or only what must stay is left."""
        dropped = 0
        while self.used() > quota * _TARGET:
            with self._lock:
                keep = self.untouchable()
                rows = self._db.execute("SELECT id FROM entry WHERE complete = 1 ORDER BY id").fetchall()
            some = [row[0] for row in rows if row[0] not in keep]
            if not some:
                break
            for entry in some[: max(1, len(some) // 10)]:
                self.drop(entry)
                dropped += 1
            self.sweep()
        return dropped

    def drop(self, entry: int) -> None:
        """Forget one entry and the versions that lived in no other kept one."""
        with self._lock:
            before = self._entries.before(entry) or 0
            after = self._db.execute("SELECT min(id) FROM entry WHERE complete = 1 AND id > ?", (entry,)).fetchone()[0]
            with transaction(self._db):
                self._db.execute(
                    "DELETE FROM version WHERE born > ? AND born <= ? AND died <= ?", (before, entry, after or entry)
                )
                self._db.execute("DELETE FROM entry WHERE id = ?", (entry,))
                self._db.execute("UPDATE entry SET equals = id WHERE equals = ?", (entry,))
                self._db.execute("UPDATE entry SET redo_to = NULL, redo_next = NULL WHERE redo_to = ?", (entry,))
                self._db.execute("UPDATE entry SET redo_next = NULL WHERE redo_next = ?", (entry,))

    def sweep(self) -> None:
        """Take away contents, chunks and places that nothing refers to, and give the space back."""
        self._in_batches(
            "SELECT id FROM content WHERE id NOT IN (SELECT content FROM version WHERE content IS NOT NULL) LIMIT ?",
            ("DELETE FROM content WHERE id = ?", "DELETE FROM piece WHERE content = ?"),
        )
        self._in_batches(
            "SELECT id FROM place WHERE id NOT IN (SELECT place FROM version) AND id NOT IN (SELECT parent FROM place) LIMIT ?",
            ("DELETE FROM place WHERE id = ?",),
        )
        self._sweep_chunks()
        self._sweep_strays()
        while self._vacuum_some():
            time.sleep(0)
        with self._lock:
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _in_batches(self, find: str, deletes: tuple[str, ...]) -> None:
        """Finding and deleting under one lock: a snapshot in between could begin to refer to what was found."""
        while True:
            with self._lock, transaction(self._db):
                ids = self._db.execute(find, (_BATCH * 20,)).fetchall()
                for delete in deletes:
                    self._db.executemany(delete, ids)
            if not ids:
                return

    def _sweep_chunks(self) -> None:
        while True:
            with self._lock:
                rows = self._db.execute(
                    "SELECT id, hash FROM chunk WHERE id NOT IN (SELECT chunk FROM piece) LIMIT ?", (_BATCH,)
                ).fetchall()
                with transaction(self._db):
                    self._db.executemany("DELETE FROM chunk WHERE id = ?", [(row[0],) for row in rows])
                # Row first: a file without a row is litter, a row without a file would be damage.
                for _, digest in rows:
                    self._path(digest).unlink(missing_ok=True)
            if not rows:
                return

    def _sweep_strays(self) -> None:
        """Files of a snapshot that never committed."""
        for folder in sorted(self._chunks.iterdir()):
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
            self._db.execute("PRAGMA incremental_vacuum(2000)").fetchall()
            return int(self._db.execute("PRAGMA freelist_count").fetchone()[0]) > 0

    def _path(self, digest: bytes) -> Path:
        name = digest.hex()
        return self._chunks / name[:2] / name[2:]


def collect(
    collector: Collector,
    quota: int,
    *,
    now: float,
    aged: float,
    told_at: float | None,
    grace: float,
    tell: Callable[[int], None],
) -> Collected:
    """Thin by age, which `aged` tells the time for; when that is not enough, tell first, and drop the oldest once the owner had `grace` seconds to act."""
    before = collector.used()
    thinned = collector.thin(aged)
    collector.sweep()
    dropped = 0
    waiting = False
    if collector.used() > quota:
        if told_at is None:
            tell(collector.used())
            told_at = now
        if now - told_at >= grace:
            dropped = collector.drop_oldest(quota)
        else:
            waiting = True
    used = collector.used()
    return Collected(thinned, dropped, max(0, before - used), used, quota, waiting)
