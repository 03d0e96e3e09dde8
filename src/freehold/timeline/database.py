"""The SQLite file of the timeline: how it is opened, its tables, and the migration of other rooms' tables."""

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from freehold.errors import FreeholdError
from freehold.timeline.errors import explain_open_error
from freehold.timeline.event import GENESIS

APPLICATION_ID = 0x46484C44  # "FHLD"
FORMAT = 2
LOCK_TIMEOUT = 30.0
"""How long a writer waits for the write lock, in seconds."""
BUSY_TIMEOUT_MS = 5
"""Milliseconds between two tries to get the lock. SQLite's own waits are up to 100, so that a busy writer would starve the others."""

_CANNOT_WRITE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL)

# Each process has several connections, and each would keep 2 MB of pages that the kernel has in memory anyway.
_CACHE = "PRAGMA cache_size = -512"

# The triggers prevent mistakes of our own. Changes by somebody with access to the file are found by the hash chain.
_TABLES = """
CREATE TABLE event (
  seq INTEGER PRIMARY KEY, at TEXT NOT NULL, kind TEXT NOT NULL, who TEXT NOT NULL,
  data TEXT NOT NULL, previous TEXT NOT NULL, hash TEXT NOT NULL
) STRICT;
CREATE INDEX event_kind ON event (kind, seq);
CREATE TABLE head (only INTEGER PRIMARY KEY CHECK (only = 1), seq INTEGER NOT NULL, hash TEXT NOT NULL) STRICT;
CREATE TABLE room (name TEXT PRIMARY KEY, steps INTEGER NOT NULL) STRICT;
CREATE TRIGGER event_follows BEFORE INSERT ON event
  WHEN NEW.seq IS NOT (SELECT seq + 1 FROM head) OR NEW.previous IS NOT (SELECT hash FROM head)
  BEGIN SELECT RAISE(ABORT, 'an event must follow the last one'); END;
CREATE TRIGGER event_stays_same BEFORE UPDATE ON event BEGIN SELECT RAISE(ABORT, 'the timeline is append-only'); END;
CREATE TRIGGER event_stays BEFORE DELETE ON event BEGIN SELECT RAISE(ABORT, 'the timeline is append-only'); END;
CREATE TRIGGER head_advances BEFORE UPDATE ON head
  WHEN NEW.seq IS NOT OLD.seq + 1 BEGIN SELECT RAISE(ABORT, 'the timeline is append-only'); END;
CREATE TRIGGER head_stays BEFORE DELETE ON head BEGIN SELECT RAISE(ABORT, 'the timeline is append-only'); END;
"""

# See `archive`. An event that is in it may leave the table; nothing else may.
_ARCHIVE = """
CREATE TABLE archive (
  first INTEGER PRIMARY KEY, last INTEGER NOT NULL, latest TEXT NOT NULL, hash TEXT NOT NULL, previous TEXT NOT NULL,
  file TEXT NOT NULL, offset INTEGER NOT NULL, size INTEGER NOT NULL
) STRICT;
CREATE TABLE archive_kind (kind TEXT NOT NULL, first INTEGER NOT NULL, PRIMARY KEY (kind, first)) STRICT, WITHOUT ROWID;
CREATE TRIGGER archive_follows BEFORE INSERT ON archive
  WHEN NEW.first IS NOT coalesce((SELECT last FROM archive ORDER BY first DESC LIMIT 1), 0) + 1
    OR NEW.last IS NOT (SELECT seq FROM event WHERE seq = NEW.last AND hash = NEW.hash)
  BEGIN SELECT RAISE(ABORT, 'an archived block must follow the last one'); END;
CREATE TRIGGER archive_stays_same BEFORE UPDATE ON archive
  BEGIN SELECT RAISE(ABORT, 'the timeline is append-only'); END;
CREATE TRIGGER archive_stays BEFORE DELETE ON archive BEGIN SELECT RAISE(ABORT, 'the timeline is append-only'); END;
DROP TRIGGER event_stays;
CREATE TRIGGER event_stays BEFORE DELETE ON event
  WHEN OLD.seq > coalesce((SELECT last FROM archive ORDER BY first DESC LIMIT 1), 0)
  BEGIN SELECT RAISE(ABORT, 'the timeline is append-only'); END;
"""


def open_writer(path: Path) -> sqlite3.Connection:
    """Opens the database for writing; creates it with mode 0600 when it is missing."""
    try:
        # SQLite gives the -wal and -shm files the mode of the database.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    except OSError as error:
        raise explain_open_error(error, path) from error
    connection = sqlite3.connect(path, timeout=LOCK_TIMEOUT, isolation_level=None, check_same_thread=False)
    try:
        connection.execute(_CACHE)
        _prepare(connection, path)
        connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
    except BaseException:
        connection.close()
        raise
    return connection


def begin_write(connection: sqlite3.Connection) -> None:
    """Begins a write transaction; waits while another process has one."""
    deadline = time.monotonic() + LOCK_TIMEOUT
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        else:
            return


def open_reader(path: Path) -> sqlite3.Connection:
    """Opens an existing database for reading. Also works on a read-only file system."""
    if not path.exists():
        raise _missing(path)
    try:
        return _read_only(path, "mode=ro")
    except sqlite3.OperationalError as error:
        # SQLite cannot create the -shm file on a full disk or in a read-only folder. When the -wal file is empty, the
        # database file alone has everything.
        if error.sqlite_errorcode & 0xFF in _CANNOT_WRITE and _is_empty(path.with_name(path.name + "-wal")):
            return _read_only(path, "immutable=1")
        raise


def _is_empty(wal: Path) -> bool:
    return not wal.exists() or wal.stat().st_size == 0


def _missing(path: Path) -> FreeholdError:
    return FreeholdError(
        "timeline.missing",
        f"There is no timeline at {path}",
        hint="Start Freehold once (freehold up), or name another one with --home",
    )


@contextmanager
def _one_moment(connection: sqlite3.Connection) -> Iterator[None]:
    """All that is read inside is of one moment, also while another process makes the tables."""
    if connection.in_transaction:
        yield
        return
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


def check_format(connection: sqlite3.Connection, path: Path) -> int:
    """The format of the file; 0 for a new one. Refuses other databases and the files of a newer Freehold."""
    with _one_moment(connection):
        (made_by,) = connection.execute("PRAGMA application_id").fetchone()
        found = int(connection.execute("PRAGMA user_version").fetchone()[0])
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if made_by != APPLICATION_ID and (made_by or tables):
        raise FreeholdError(
            "timeline.foreign",
            f"{path} is a database of another program",
            hint=f"Move it away: mv {path} {path}.foreign",
        )
    if found > FORMAT:
        raise FreeholdError(
            "timeline.newer",
            f"{path} has format {found}; this Freehold knows formats up to {FORMAT}",
            hint="A newer Freehold wrote it. Install that version again",
        )
    return found


def migrate_tables(connection: sqlite3.Connection, room: str, steps: Sequence[str], path: Path) -> None:
    """Runs the steps that have not run on this database. Call it inside a write transaction."""
    row = connection.execute("SELECT steps FROM room WHERE name = ?", (room,)).fetchone()
    done = row[0] if row else 0
    if done > len(steps):
        raise FreeholdError(
            "timeline.newer",
            f"The tables of {room} in {path} are at step {done}; this Freehold knows {len(steps)} steps",
            hint="A newer Freehold wrote them. Install that version again",
        )
    for step in steps[done:]:
        run_script(connection, step)
    connection.execute(
        "INSERT INTO room VALUES (?, ?) ON CONFLICT DO UPDATE SET steps = excluded.steps", (room, len(steps))
    )


def run_script(connection: sqlite3.Connection, script: str) -> None:
    """Like `executescript`, but inside the current transaction."""
    statement = ""
    for part in script.split(";"):
        statement += part
        if not statement.strip():
            statement = ""
        elif sqlite3.complete_statement(statement + ";"):
            connection.execute(statement)
            statement = ""
        else:
            statement += ";"
    if statement.strip(" \n\t;"):
        connection.execute(statement)


def _read_only(path: Path, how: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?{how}", uri=True, timeout=LOCK_TIMEOUT, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute(_CACHE)
        found = check_format(connection, path)
    except BaseException:
        connection.close()
        raise
    if found == 0:  # an empty file: another process is creating it, or was killed while it did
        connection.close()
        raise _missing(path)
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    if path.stat().st_size == 0:
        # Before the first page is written: pages of archived events can be given back to the file system.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    deadline = time.monotonic() + LOCK_TIMEOUT
    while True:
        try:
            # SQLite does not wait here when another process also switches to WAL. Try again until it has finished.
            connection.execute("PRAGMA journal_mode = WAL")
            break
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA journal_size_limit = 16777216")
    if check_format(connection, path) == FORMAT:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        found = check_format(connection, path)
        if found == 0:
            run_script(connection, _TABLES)
            connection.execute("INSERT INTO head VALUES (1, 0, ?)", (GENESIS,))
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        if found < FORMAT:
            run_script(connection, _ARCHIVE)
            connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
