"""The SQLite file of the store: the schema, opening it, and the removal of incomplete entries of a killed process."""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from freehold.errors import FreeholdError

SCHEMA_VERSION = 3
JOURNAL_LIMIT = 16 << 20
_RESERVE_BYTES = 1 << 20

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE entry (
    id INTEGER PRIMARY KEY,
    at REAL NOT NULL,
    kind TEXT NOT NULL,
    who TEXT NOT NULL,
    why TEXT NOT NULL,
    complete INTEGER NOT NULL DEFAULT 0,
    equals INTEGER NOT NULL,
    redo_to INTEGER,
    redo_next INTEGER,
    good INTEGER NOT NULL DEFAULT 0,
    added INTEGER NOT NULL DEFAULT 0,
    changed INTEGER NOT NULL DEFAULT 0,
    removed INTEGER NOT NULL DEFAULT 0,
    lines_added INTEGER,
    lines_removed INTEGER,
    notes TEXT NOT NULL DEFAULT '[]'
);
CREATE TABLE place (id INTEGER PRIMARY KEY, parent INTEGER NOT NULL, name BLOB NOT NULL);
CREATE UNIQUE INDEX place_name ON place (parent, name);
CREATE TABLE version (
    id INTEGER PRIMARY KEY,
    place INTEGER NOT NULL,
    born INTEGER NOT NULL,
    died INTEGER,
    mode INTEGER NOT NULL,
    mtime INTEGER NOT NULL,
    size INTEGER NOT NULL,
    content INTEGER,
    flag INTEGER NOT NULL,
    ino INTEGER NOT NULL,
    ctime INTEGER NOT NULL,
    nlink INTEGER NOT NULL,
    node INTEGER NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX version_place ON version (place, born);
CREATE UNIQUE INDEX version_live ON version (place) WHERE died IS NULL;
CREATE INDEX version_born ON version (born);
CREATE INDEX version_died ON version (died) WHERE died IS NOT NULL;
CREATE INDEX version_flag ON version (flag) WHERE died IS NULL AND flag != 0;
CREATE TABLE content (id INTEGER PRIMARY KEY, hash BLOB NOT NULL, size INTEGER NOT NULL, form INTEGER NOT NULL, data BLOB);
CREATE UNIQUE INDEX content_hash ON content (hash);
CREATE TABLE chunk (id INTEGER PRIMARY KEY, hash BLOB NOT NULL UNIQUE, size INTEGER NOT NULL, stored INTEGER NOT NULL);
CREATE TABLE piece (content INTEGER NOT NULL, position INTEGER NOT NULL, chunk INTEGER NOT NULL, PRIMARY KEY (content, position)) WITHOUT ROWID;
CREATE TABLE intent (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    kind TEXT NOT NULL,
    began REAL NOT NULL,
    before INTEGER NOT NULL,
    target INTEGER NOT NULL,
    token TEXT NOT NULL,
    paths BLOB NOT NULL,
    who TEXT NOT NULL DEFAULT '{}',
    why TEXT NOT NULL DEFAULT '',
    recorded INTEGER,
    revert TEXT
);
CREATE TABLE notice (code TEXT PRIMARY KEY, at REAL NOT NULL, message TEXT NOT NULL, hint TEXT NOT NULL);
"""

# The state of a file with several names, once for all of them; `version.node` refers to it. See `linked_files`.
_LINKED_FILES = """
CREATE TABLE node_version (
    id INTEGER PRIMARY KEY,
    node INTEGER NOT NULL,
    born INTEGER NOT NULL,
    died INTEGER,
    mode INTEGER NOT NULL,
    mtime INTEGER NOT NULL,
    size INTEGER NOT NULL,
    content INTEGER,
    flag INTEGER NOT NULL,
    ino INTEGER NOT NULL,
    ctime INTEGER NOT NULL,
    nlink INTEGER NOT NULL
);
CREATE UNIQUE INDEX node_version_node ON node_version (node, born);
CREATE UNIQUE INDEX node_version_live ON node_version (node) WHERE died IS NULL;
CREATE INDEX node_version_ino ON node_version (ino) WHERE died IS NULL;
CREATE INDEX node_version_born ON node_version (born);
CREATE INDEX node_version_died ON node_version (died) WHERE died IS NOT NULL;
CREATE INDEX node_version_flag ON node_version (flag) WHERE died IS NULL AND flag != 0;
CREATE INDEX version_node ON version (node) WHERE node != 0;
CREATE INDEX version_ino ON version (ino) WHERE died IS NULL AND node = 0;
"""

# Copies of a folder that somebody works in, and what came of them. See `working_copy` and `change_set`.
_WORKING_COPIES = """
CREATE TABLE working_copy (
    name TEXT PRIMARY KEY, base INTEGER NOT NULL, folder BLOB, at REAL NOT NULL, stamp INTEGER NOT NULL
);
CREATE TABLE change_set (
    name TEXT PRIMARY KEY, base INTEGER NOT NULL, at REAL NOT NULL, merged INTEGER, skipped TEXT NOT NULL
);
CREATE TABLE set_change (
    change_set TEXT NOT NULL, path BLOB NOT NULL,
    old_mode INTEGER, old_mtime INTEGER, old_size INTEGER, old_content INTEGER,
    mode INTEGER, mtime INTEGER, size INTEGER, content INTEGER,
    PRIMARY KEY (change_set, path)
) WITHOUT ROWID;
"""

# From the schema of Freehold 0.1.0, in which each name of a file had a state of its own.
_NEW_COLUMNS = """
ALTER TABLE version ADD COLUMN node INTEGER NOT NULL DEFAULT 0;
ALTER TABLE intent ADD COLUMN who TEXT NOT NULL DEFAULT '{}';
ALTER TABLE intent ADD COLUMN why TEXT NOT NULL DEFAULT '';
ALTER TABLE intent ADD COLUMN recorded INTEGER;
ALTER TABLE intent ADD COLUMN revert TEXT;
DROP INDEX version_ino;
CREATE INDEX version_flag ON version (flag) WHERE died IS NULL AND flag != 0;
"""
_OLD_LINKS = """
CREATE TEMP TABLE linked AS SELECT DISTINCT ino FROM version WHERE nlink > 1 AND mode & 61440 = 32768;
CREATE INDEX temp.linked_ino ON linked (ino);
UPDATE version SET node = (SELECT linked.rowid FROM linked WHERE linked.ino = version.ino)
    WHERE nlink > 1 AND mode & 61440 = 32768;
INSERT INTO node_version (node, born, mode, mtime, size, content, flag, ino, ctime, nlink)
    SELECT node, (SELECT coalesce(max(id), 1) FROM entry WHERE complete = 1), mode, mtime, size, content, flag, ino, 0, nlink
    FROM version WHERE id IN (SELECT max(id) FROM version WHERE died IS NULL AND node != 0 GROUP BY node);
DROP TABLE linked;
"""


def open_database(path: Path) -> sqlite3.Connection:
    """Open for writing; create it when it is missing. The caller's lock ensures that only one process has it open."""
    fresh = not path.exists()
    os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    db = _connect(f"file:{_quoted(path)}?mode=rw")
    try:
        if fresh or db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")
            db.execute("PRAGMA journal_mode = WAL")
            db.executescript(
                "BEGIN;" + SCHEMA + _LINKED_FILES + _WORKING_COPIES + f"PRAGMA user_version = {SCHEMA_VERSION};COMMIT;"
            )
        db.execute("PRAGMA journal_mode = WAL")
        found = db.execute("PRAGMA user_version").fetchone()[0]
        if found == 1:
            drop_incomplete_entries(db, ("version",))
            db.executescript("BEGIN;" + _NEW_COLUMNS + _LINKED_FILES + _OLD_LINKS + "PRAGMA user_version = 2;COMMIT;")
            found = 2
        if found == 2:
            db.executescript("BEGIN;" + _WORKING_COPIES + "PRAGMA user_version = 3;COMMIT;")
            found = 3
    except sqlite3.DatabaseError as error:
        db.close()
        raise FreeholdError(
            "history.damaged",
            f"The history in {path} cannot be opened: {error}",
            hint=f"Move it away and start with a new one: mv {path.parent} {path.parent}.damaged",
        ) from error
    if found != SCHEMA_VERSION:
        db.close()
        raise FreeholdError(
            "history.schema",
            f"The history in {path} has schema {found}; this Freehold supports schema {SCHEMA_VERSION}",
            hint="Use the version of Freehold that wrote it, or a newer one",
        )
    return db


def open_reader(path: Path) -> sqlite3.Connection:
    """A second, read-only connection, so that the log can be read during a long snapshot."""
    db = _connect(f"file:{_quoted(path)}?mode=rw")
    db.execute("PRAGMA query_only = ON")
    return db


def _connect(uri: str) -> sqlite3.Connection:
    db = sqlite3.connect(
        uri, uri=True, check_same_thread=False, isolation_level=None, timeout=10.0, cached_statements=256
    )
    db.execute("PRAGMA synchronous = NORMAL")
    db.execute("PRAGMA cache_size = -8192")
    db.execute("PRAGMA temp_store = MEMORY")
    db.execute(f"PRAGMA journal_size_limit = {JOURNAL_LIMIT}")
    return db


def _quoted(path: Path) -> str:
    return str(path).replace("%", "%25").replace("?", "%3f").replace("#", "%23")


def save_tracked_folders(db: sqlite3.Connection, roots: tuple[str, ...], ignore: tuple[str, ...]) -> None:
    """Store which folders are recorded, so that a command without a keeper and a manifest records the same."""
    kept = json.dumps({"roots": roots, "ignore": ignore})
    row = db.execute("SELECT value FROM meta WHERE key = 'kept'").fetchone()
    if row is None or row[0] != kept:
        with suppress(sqlite3.OperationalError):
            db.execute("INSERT OR REPLACE INTO meta VALUES ('kept', ?)", (kept,))


def read_tracked_folders(folder: Path) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The names of the recorded folders and the ignore patterns; None when there is no history yet."""
    path = folder / "history.db"
    if not path.exists():
        return None
    db = open_reader(path)
    try:
        row = db.execute("SELECT value FROM meta WHERE key = 'kept'").fetchone()
    except sqlite3.DatabaseError:
        return None
    finally:
        db.close()
    kept = json.loads(row[0]) if row else None
    return (tuple(kept["roots"]), tuple(kept["ignore"])) if kept else None


def allocate_reserve(path: Path) -> None:
    """Set aside some disk space: on a full disk SQLite needs a little space to shrink its journal."""
    with suppress(OSError):
        handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(handle, 0, _RESERVE_BYTES)
        finally:
            os.close(handle)


def shrink_journal(db: sqlite3.Connection, path: Path) -> None:
    """After a write failed on a full disk: free the reserve, shrink the journal, and allocate the reserve again."""
    path.unlink(missing_ok=True)
    with suppress(sqlite3.OperationalError):
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    allocate_reserve(path)


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Commit everything or nothing. After an error the connection can be used again."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def drop_incomplete_entries(db: sqlite3.Connection, tables: tuple[str, ...] = ("version", "node_version")) -> int:
    """Delete entries that were never completed; the state before them is intact. Returns their number."""
    half = [row[0] for row in db.execute("SELECT id FROM entry WHERE complete = 0")]
    if half:
        with transaction(db):
            for entry in half:
                for table in tables:
                    db.execute(f"DELETE FROM {table} WHERE born = ?", (entry,))  # noqa: S608
                    db.execute(f"UPDATE {table} SET died = NULL WHERE died = ?", (entry,))  # noqa: S608
                db.execute("DELETE FROM entry WHERE id = ?", (entry,))
    return len(half)
