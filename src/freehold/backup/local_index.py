"""What this machine knows of the repository: which blobs are in it, and how files looked at the last backup.

All of it can be lost: it is read from the repository again. Losing the number of the newest backup only means that an
older state of the store is not noticed.
"""

import json
import os
import secrets
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from freehold.backup.repository import BackupRepository, PackRecord, RepositoryListing

_VERSION = 1
_SCHEMA = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE pack (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, listed TEXT);
CREATE TABLE blob (id BLOB PRIMARY KEY, pack INTEGER NOT NULL, size INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE lost (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE file (path BLOB PRIMARY KEY, stamp TEXT NOT NULL, size INTEGER NOT NULL, blobs BLOB NOT NULL) WITHOUT ROWID;
PRAGMA user_version = {_VERSION};
"""


@dataclass(frozen=True)
class KnownFile:
    """A file as it was read last: what identified its state, its size, and its blobs."""

    stamp: str
    size: int
    blobs: tuple[bytes, ...]


class LocalIndex:
    """Used by one process at a time, which holds the lock of the job."""

    def __init__(self, folder: Path, place: str) -> None:
        """`place` names the repository and its key; what is known of another one is forgotten."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.path = folder / "index.db"
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        self.db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(place)
        except sqlite3.DatabaseError:  # damaged: all of it can be had again
            self.db.close()
            for path in folder.glob("index.db*"):
                path.unlink()
            self.db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
            self._prepare(place)

    def _prepare(self, place: str) -> None:
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = NORMAL")
        found = self.db.execute("PRAGMA user_version").fetchone()[0]
        if found != _VERSION:
            for (name,) in self.db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                self.db.execute(f"DROP TABLE {name}")
            self.db.executescript(_SCHEMA)
        if self.read_note("place") != place:
            holder = self.read_note("holder")
            with self.db:
                self.db.execute("BEGIN")
                for table in ("meta", "pack", "blob", "lost", "file"):
                    self.db.execute(f"DELETE FROM {table}")  # noqa: S608
                self.write_note("place", place)
                self.write_note("holder", holder or secrets.token_hex(16))

    def close(self) -> None:
        self.db.close()

    def read_note(self, key: str) -> str | None:
        row = self.db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def write_note(self, key: str, value: str) -> None:
        self.db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    @property
    def holder(self) -> str:
        return self.read_note("holder") or ""

    @property
    def newest(self) -> tuple[int, str]:
        """The number and the digest of the newest backup that this machine has written or seen; (0, "") for none."""
        found = self.read_note("newest")
        number, digest = json.loads(found) if found else (0, "")
        return int(number), str(digest)

    def set_newest(self, number: int, digest: str) -> None:
        self.write_note("newest", json.dumps([number, digest]))

    def synchronize(self, repository: BackupRepository, listing: RepositoryListing) -> None:
        """Read the indexes that are new. When one is gone, everything is read again: its packs may be gone too."""
        known = {row[0] for row in self.db.execute("SELECT DISTINCT listed FROM pack WHERE listed IS NOT NULL")}
        known |= set(json.loads(self.read_note("empty-indexes") or "[]"))
        if known - listing.indexes:
            self.forget_packs()
            known = set()
        for name in sorted(listing.indexes - known):
            packs, trouble = repository.find_index(name)
            if trouble is not None:
                continue  # a verification tells it; what it named is stored again
            with self.db:
                self.db.execute("BEGIN")
                for pack in packs:
                    self.add_pack(pack, listed=name)
                if not packs or not self.db.execute("SELECT 1 FROM pack WHERE listed = ?", (name,)).fetchone():
                    self.write_note(
                        "empty-indexes", json.dumps([*json.loads(self.read_note("empty-indexes") or "[]"), name])
                    )

    def forget_packs(self) -> None:
        """Packs that are in no index yet are kept: they were stored by a backup that goes on."""
        with self.db:
            self.db.execute("BEGIN")
            self.db.execute("DELETE FROM blob WHERE pack IN (SELECT id FROM pack WHERE listed IS NOT NULL)")
            self.db.execute("DELETE FROM pack WHERE listed IS NOT NULL")
            self.db.execute("DELETE FROM meta WHERE key = 'empty-indexes'")
            self.db.execute("DELETE FROM file")

    def add_pack(self, pack: PackRecord, *, listed: str | None) -> None:
        """Call it inside a transaction. A pack that is known already is only noted as listed."""
        if listed is None:
            self.db.execute("DELETE FROM lost WHERE name = ?", (pack.name,))
        elif self.db.execute("SELECT 1 FROM lost WHERE name = ?", (pack.name,)).fetchone() is not None:
            return
        row = self.db.execute("SELECT id, listed FROM pack WHERE name = ?", (pack.name,)).fetchone()
        if row is not None:
            if row[1] is None and listed is not None:
                self.db.execute("UPDATE pack SET listed = ? WHERE id = ?", (listed, row[0]))
            return
        cursor = self.db.execute(
            "INSERT INTO pack (name, size, listed) VALUES (?, ?, ?)", (pack.name, pack.size, listed)
        )
        self.db.executemany(
            "INSERT OR IGNORE INTO blob VALUES (?, ?, ?)",
            [(digest, cursor.lastrowid, size) for digest, size in pack.blobs],
        )

    def mark_lost(self, name: str) -> None:
        """Forget what this pack had: the next backup stores it again, as far as it is still here."""
        with self.db:
            self.db.execute("BEGIN")
            self.db.execute("INSERT OR IGNORE INTO lost VALUES (?)", (name,))
            self.db.execute("DELETE FROM blob WHERE pack = (SELECT id FROM pack WHERE name = ?)", (name,))
            self.db.execute("DELETE FROM pack WHERE name = ?", (name,))
            self.forget_state()

    def unlist(self, name: str) -> None:
        """An index is lost: the packs that it named get into the next one."""
        self.db.execute("UPDATE pack SET listed = NULL WHERE listed = ?", (name,))
        self.forget_state()

    def forget_state(self) -> None:
        """The next backup is made even if nothing has changed."""
        self.db.execute("DELETE FROM meta WHERE key = 'state'")

    def list_lost(self) -> set[str]:
        return {row[0] for row in self.db.execute("SELECT name FROM lost")}

    def has(self, digest: bytes) -> bool:
        return self.db.execute("SELECT 1 FROM blob WHERE id = ?", (digest,)).fetchone() is not None

    def list_unlisted(self) -> list[PackRecord]:
        """Packs that are stored and in no index yet."""
        return [
            PackRecord(name, size, tuple(self.db.execute("SELECT id, size FROM blob WHERE pack = ?", (pack,))))
            for pack, name, size in self.db.execute("SELECT id, name, size FROM pack WHERE listed IS NULL").fetchall()
        ]

    def mark_listed(self, name: str) -> None:
        self.db.execute("UPDATE pack SET listed = ? WHERE listed IS NULL", (name,))

    def find_file(self, path: bytes) -> KnownFile | None:
        row = self.db.execute("SELECT stamp, size, blobs FROM file WHERE path = ?", (path,)).fetchone()
        if row is None:
            return None
        packed = bytes(row[2])
        return KnownFile(row[0], row[1], tuple(packed[at : at + 32] for at in range(0, len(packed), 32)))

    def save_files(self, files: Iterable[tuple[bytes, KnownFile]]) -> None:
        """Replaces all that was known: a file that is not in `files` is gone."""
        with self.db:
            self.db.execute("BEGIN")
            self.db.execute("DELETE FROM file")
            self.db.executemany(
                "INSERT INTO file VALUES (?, ?, ?, ?)",
                ((path, known.stamp, known.size, b"".join(known.blobs)) for path, known in files),
            )
