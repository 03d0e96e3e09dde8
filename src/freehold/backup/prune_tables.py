"""What a prune compares: the packs with their blobs, and which blobs are used. On the disk, because there may be millions."""

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Literal

from freehold.backup.repository import PackRecord
from freehold.errors import FreeholdError

_SCHEMA = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA cache_size = -65536;
CREATE TABLE pack (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, lost INTEGER NOT NULL DEFAULT 0,
    fate TEXT NOT NULL DEFAULT 'kept');
CREATE TABLE blob (pack INTEGER NOT NULL, digest BLOB NOT NULL, size INTEGER NOT NULL, PRIMARY KEY (pack, digest)) WITHOUT ROWID;
CREATE INDEX blob_digest ON blob (digest);
CREATE TABLE used (digest BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE VIEW sound AS SELECT digest, fate FROM blob JOIN pack ON pack.id = blob.pack WHERE NOT lost;
"""
_HEADER = 512
"""Bytes of a pack for each blob, beside its content."""
PackFate = Literal["kept", "rewritten", "dead"]


class PruneTables:
    """It is also where a `BlobReader` finds blobs: `names`, `find` and `trouble`."""

    def __init__(self, path: Path) -> None:
        """`path` does not exist yet. What is in it is of no use afterwards."""
        self._db = sqlite3.connect(path, isolation_level=None)
        self._db.executescript(_SCHEMA)
        self._db.execute("BEGIN")  # it never ends: nobody else reads this
        self.names: list[str] = []
        self.trouble: FreeholdError | None = None

    def close(self) -> None:
        self._db.close()

    def add_packs(self, packs: Iterable[PackRecord]) -> None:
        """One that is known is there again. Its name says what is in it: two records differ only by what one leaves out."""
        for pack in packs:
            row = self._db.execute("SELECT id FROM pack WHERE name = ?", (pack.name,)).fetchone()
            if row is None:
                number = len(self.names)
                self.names.append(pack.name)
                self._db.execute("INSERT INTO pack (id, name, size) VALUES (?, ?, ?)", (number, pack.name, pack.size))
            else:
                number = row[0]
                self._db.execute("UPDATE pack SET lost = 0, fate = 'kept' WHERE id = ?", (number,))
            self._db.executemany(
                "INSERT OR IGNORE INTO blob VALUES (?, ?, ?)", ((number, digest, size) for digest, size in pack.blobs)
            )

    def add_used(self, digests: Iterable[bytes]) -> None:
        self._db.executemany("INSERT OR IGNORE INTO used VALUES (?)", ((digest,) for digest in digests))

    def mark_lost(self, names: Iterable[str]) -> None:
        self._db.executemany("UPDATE pack SET lost = 1 WHERE name = ?", ((name,) for name in names))

    def set_fate(self, names: Iterable[str], fate: PackFate) -> None:
        self._db.executemany("UPDATE pack SET fate = ? WHERE name = ?", ((fate, name) for name in names))

    def find(self, digest: bytes, failed: set[int]) -> int | None:
        """A pack that has this blob and has not failed."""
        rows = self._db.execute("SELECT pack FROM blob WHERE digest = ? ORDER BY pack", (digest,))
        return next((number for (number,) in rows if number not in failed), None)

    def count_missing(self) -> int:
        """Used blobs that no pack has."""
        sql = "SELECT count(*) FROM used WHERE NOT EXISTS (SELECT 1 FROM blob WHERE blob.digest = used.digest)"
        return int(self._db.execute(sql).fetchone()[0])

    def measure(self) -> Iterator[tuple[str, bool, int, int]]:
        """Each pack: its name, whether it is lost, the bytes of its blobs, and of those that are used."""
        rows = self._db.execute(
            "SELECT name, lost, coalesce(sum(blob.size + ?), 0), coalesce(sum((blob.size + ?) * (used.digest IS NOT NULL)), 0) "
            "FROM pack LEFT JOIN blob ON blob.pack = pack.id LEFT JOIN used ON used.digest = blob.digest GROUP BY pack.id",
            (_HEADER, _HEADER),
        )
        for name, lost, total, live in rows:
            yield name, bool(lost), total, live

    def is_safe(self, name: str) -> bool:
        """Whether every used blob of this lost pack is in one that is not lost."""
        row = self._db.execute(
            "SELECT 1 FROM pack JOIN blob ON blob.pack = pack.id JOIN used ON used.digest = blob.digest "
            "WHERE pack.name = ? AND NOT EXISTS (SELECT 1 FROM sound WHERE sound.digest = blob.digest) LIMIT 1",
            (name,),
        ).fetchone()
        return row is None

    def must_move(self, digest: bytes) -> bool:
        """Whether a blob is used, and in no pack that stays and is not lost."""
        row = self._db.execute(
            "SELECT 1 FROM used WHERE digest = ? "
            "AND NOT EXISTS (SELECT 1 FROM sound WHERE sound.digest = used.digest AND fate = 'kept')",
            (digest,),
        ).fetchone()
        return row is not None

    def list_kept(self, most_blobs: int) -> Iterator[list[PackRecord]]:
        """What stays, in parts with a bounded number of blobs: reading one index then needs little memory. One part at least."""
        part: list[PackRecord] = []
        count = 0
        for number, name, size in self._db.execute("SELECT id, name, size FROM pack WHERE fate = 'kept' ORDER BY id"):
            if count > most_blobs:
                yield part
                part, count = [], 0
            blobs = self._db.execute("SELECT digest, size FROM blob WHERE pack = ? ORDER BY digest", (number,))
            part.append(PackRecord(name, size, tuple((bytes(digest), length) for digest, length in blobs)))
            count += len(part[-1].blobs)
        yield part

    def list_kept_names(self) -> set[str]:
        return {name for (name,) in self._db.execute("SELECT name FROM pack WHERE fate = 'kept'")}
