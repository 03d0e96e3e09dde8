"""The file under the timeline: how it is opened, what is in it, how its tables grow."""

import os
import sqlite3
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from freehold.errors import FreeholdError
from freehold.timeline.event import GENESIS
from freehold.timeline.faults import explain_open

APPLICATION_ID = 0x46484C44  # "FHLD"
FORMAT = 1
PATIENCE = 30.0
"""How long a writer waits for its turn, in seconds."""
TURN = 5
"""Milliseconds between two tries. SQLite by itself waits up to 100, and a busy writer would starve the others."""

_NO_ROOM = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL)

# The triggers stop mistakes, not a thief with the file: against that stands the chain, and `verify`.
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


def open_writer(path: Path) -> sqlite3.Connection:
    """Opens the database for writing, making it (mode 0600) where there is none."""
    try:
        # SQLite gives the -wal and -shm files the mode of the database.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
    except OSError as error:
        raise explain_open(error, path) from error
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        _prepare(connection, path)
        connection.execute(f"PRAGMA busy_timeout = {TURN}")
    except BaseException:
        connection.close()
        raise
    return connection


def begin(connection: sqlite3.Connection) -> None:
    """Begins a write transaction as soon as no other process has one."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        else:
            return


def open_reader(path: Path) -> sqlite3.Connection:
    """Opens an existing database for reading only; works on a read-only file system too."""
    if not path.exists():
        raise _missing(path)
    try:
        return _read_only(path, "mode=ro")
    except sqlite3.OperationalError as error:
        # A full disk or a read-only folder has no room for the -shm file. With nothing in the -wal file nothing is
        # missed by reading the database alone.
        if error.sqlite_errorcode & 0xFF in _NO_ROOM and _is_empty(path.with_name(path.name + "-wal")):
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


def check_format(connection: sqlite3.Connection, path: Path) -> int:
    """The format of the file: 0 for a new one. Refuses what is not a timeline or comes from a newer Freehold."""
    (made_by,) = connection.execute("PRAGMA application_id").fetchone()
    found = int(connection.execute("PRAGMA user_version").fetchone()[0])
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if made_by != APPLICATION_ID and (made_by or tables):
        raise FreeholdError(
            "timeline.foreign",
            f"{path} is a database, but not a timeline",
            hint=f"Move it away: mv {path} {path}.foreign",
        )
    if found > FORMAT:
        raise FreeholdError(
            "timeline.newer",
            f"{path} has format {found}; this Freehold knows formats up to {FORMAT}",
            hint="It was written by a newer Freehold: install that one again",
        )
    return found


def grow(connection: sqlite3.Connection, room: str, steps: Sequence[str], path: Path) -> None:
    """Runs the steps that this database has not seen yet. Call inside a write transaction."""
    row = connection.execute("SELECT steps FROM room WHERE name = ?", (room,)).fetchone()
    done = row[0] if row else 0
    if done > len(steps):
        raise FreeholdError(
            "timeline.newer",
            f"The tables of {room} in {path} have had {done} steps; this Freehold knows {len(steps)}",
            hint="They were written by a newer Freehold: install that one again",
        )
    for step in steps[done:]:
        run_script(connection, step)
    connection.execute(
        "INSERT INTO room VALUES (?, ?) ON CONFLICT DO UPDATE SET steps = excluded.steps", (room, len(steps))
    )


def run_script(connection: sqlite3.Connection, script: str) -> None:
    """Like `executescript`, which would commit our transaction first."""
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
        f"file:{quote(str(path))}?{how}", uri=True, timeout=PATIENCE, isolation_level=None, check_same_thread=False
    )
    try:
        found = check_format(connection, path)
    except BaseException:
        connection.close()
        raise
    if found == 0:  # an empty file: somebody is making it, or was stopped in the middle
        connection.close()
        raise _missing(path)
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            # Changing to WAL does not wait for others who do the same; they will be done in a moment.
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
        if check_format(connection, path) == 0:
            run_script(connection, _TABLES)
            connection.execute("INSERT INTO head VALUES (1, 0, ?)", (GENESIS,))
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {FORMAT}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
