"""The identity database: one SQLite file that the keeper, the gateway and the command line open at the same time.

It holds hashes of secrets, never the secrets. This module uses the standard library only, because the recovery page
must recognize the owner when everything else is broken.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.home import ensure_private_folder

SCHEMA_VERSION = 2

# `sessions` holds sign-ins and `sign_ins` holds unfinished sign-in attempts: stored names that cannot change.
_SCHEMA = """
CREATE TABLE revocations (one INTEGER PRIMARY KEY CHECK (one = 1), count INTEGER NOT NULL);
INSERT INTO revocations VALUES (1, 0);
CREATE TABLE sessions (
    hash BLOB PRIMARY KEY, id TEXT NOT NULL UNIQUE, did TEXT, label TEXT NOT NULL, address TEXT NOT NULL,
    method TEXT NOT NULL, created REAL NOT NULL, seen REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE links (
    hash BLOB PRIMARY KEY, purpose TEXT NOT NULL, created REAL NOT NULL, expires REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE tokens (
    hash BLOB PRIMARY KEY, id TEXT NOT NULL UNIQUE, did TEXT, name TEXT NOT NULL UNIQUE, scopes TEXT NOT NULL,
    created REAL NOT NULL, expires REAL, used REAL
) WITHOUT ROWID;
CREATE TABLE sign_ins (
    hash BLOB PRIMARY KEY, created REAL NOT NULL, expires REAL NOT NULL, sealed BLOB NOT NULL
) WITHOUT ROWID;
"""


class IdentityDatabase:
    """One connection, safe to share between threads. Every write is durable before the call returns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = threading.RLock()
        try:
            _create_private(path)
            self._connection = sqlite3.connect(path, timeout=5, isolation_level=None, check_same_thread=False)
            try:
                self._prepare()
            except BaseException:
                self._connection.close()
                raise
        except sqlite3.DatabaseError as error:
            raise FreeholdError(
                "identity.database",
                f"Cannot use the identity database {path}: {error}",
                hint=f"Move it away (mv {path} {path}.broken). All sign-ins and API tokens are lost; sign in again",
            ) from error

    def _prepare(self) -> None:
        # FULL: a revocation that was confirmed must still hold after a power cut.
        self._connection.execute("PRAGMA journal_mode = WAL").fetchall()
        self._connection.execute("PRAGMA synchronous = FULL")
        self._connection.execute("PRAGMA secure_delete = ON").fetchall()
        with self.transaction() as connection:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version == 0:
                for statement in _SCHEMA.strip().split(";\n"):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            elif version == 1:
                # The cookies of version 0.1 were sent to every port of this machine, also to apps behind a forward.
                connection.execute("DELETE FROM sessions")
                increment_revocations(connection)
                connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            elif version != SCHEMA_VERSION:
                raise FreeholdError(
                    "identity.database-version",
                    f"{self.path} has schema version {version}; this Freehold supports version {SCHEMA_VERSION}",
                    hint="Run the version of Freehold that wrote it, or move the file away and sign in again",
                )

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """An exclusive write transaction. It is rolled back when the block raises."""
        with self.lock:
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def query(self, statement: str, parameters: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
        with self.lock:
            return self._connection.execute(statement, parameters).fetchall()

    def write_best_effort(self, statement: str, parameters: tuple[object, ...]) -> bool:
        """Write what may be lost, such as the time of last use. Never waits for another writer or for the disk.

        Returns False when nothing was written because another process holds the write lock.
        """
        with self.lock:
            self._connection.execute("PRAGMA busy_timeout = 0").fetchall()
            self._connection.execute("PRAGMA synchronous = NORMAL")
            try:
                self._connection.execute(statement, parameters)
            except sqlite3.OperationalError:
                return False
            else:
                return True
            finally:
                self._connection.execute("PRAGMA synchronous = FULL")
                self._connection.execute("PRAGMA busy_timeout = 5000").fetchall()

    def data_version(self) -> int:
        """A number that changes when another connection has written to the file. Takes microseconds."""
        with self.lock:
            (number,) = self._connection.execute("PRAGMA data_version").fetchone()
        return int(number)

    def close(self) -> None:
        with self.lock:
            self._connection.close()


def increment_revocations(connection: sqlite3.Connection) -> None:
    """Call it in each transaction that ends a sign-in or a token: it tells other processes that one was revoked."""
    connection.execute("UPDATE revocations SET count = count + 1")


def _create_private(path: Path) -> None:
    ensure_private_folder(path.parent)
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        # Do not open the file to inspect it: closing any descriptor of it drops the locks of SQLite in this process.
        found = path.lstat()
        if not path.is_file() or path.is_symlink() or found.st_uid != os.geteuid():
            raise FreeholdError(
                "identity.not-ours",
                f"{path} is not a regular file owned by uid {os.geteuid()}",
                hint=f"Move it away (mv {path} {path}.old) and sign in again",
            ) from None
        if found.st_mode & 0o077:
            path.chmod(0o600)
