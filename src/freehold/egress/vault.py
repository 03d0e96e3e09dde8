"""The owner's secrets: encrypted at rest, named everywhere, and revealed only to what sends them out.

The key lies beside them, readable by nobody but the owner's user: that keeps secrets out of backups, logs and a copied
database, and not from someone who already is that user on this machine.
"""

import os
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from freehold.errors import FreeholdError
from freehold.home import ensure_private_folder
from freehold.observe.secrets import Secret
from freehold.private_file import make_private_file, read_private_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
MAX_BYTES = 64 * 1024
MAX_SECRETS = 1_000
USED_STEP = 60.0
"""The last use is written at most this often, in seconds: a use must not cost a write."""

_NONCE = 12
_KEY = 32
_TABLE = """
    CREATE TABLE IF NOT EXISTS secret (
      name TEXT PRIMARY KEY, box BLOB NOT NULL, set_at REAL NOT NULL, used_at REAL
    ) STRICT
"""


@dataclass(frozen=True)
class Kept:
    """What may be told of a secret: everything but the secret."""

    name: str
    set_at: float
    used_at: float | None


class Vault:
    """Secrets by name in `folder`. Every call blocks; each opens the file anew, so several processes may."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._noted: dict[str, float] = {}

    def put(self, name: str, value: str) -> None:
        """Keeps a secret, in place of one of the same name. Raises `secret.bad-name`, `.empty` or `.too-large`."""
        check_name(name)
        if not value or value != value.strip() or not value.isprintable():
            raise FreeholdError(
                "secret.empty",
                "A secret is one line of printable characters without blanks around it",
                hint="Copy it again from where it was issued",
            )
        data = value.encode()
        if len(data) > MAX_BYTES:
            raise FreeholdError("secret.too-large", f"A secret holds at most {MAX_BYTES} bytes")
        nonce = os.urandom(_NONCE)
        with self._opened() as database:
            if database.execute("SELECT count(*) FROM secret WHERE name != ?", (name,)).fetchone()[0] >= MAX_SECRETS:
                raise FreeholdError("secret.too-many", f"There are already {MAX_SECRETS} secrets")
            box = nonce + self._cipher().encrypt(nonce, data, name.encode())
            database.execute(
                "INSERT OR REPLACE INTO secret (name, box, set_at) VALUES (?, ?, ?)", (name, box, time.time())
            )

    def get(self, name: str) -> Secret:
        """Raises `secret.not-found`, or `secret.unreadable` when it was tampered with or the key is another."""
        from cryptography.exceptions import InvalidTag

        with self._opened() as database:
            row = database.execute("SELECT box FROM secret WHERE name = ?", (name,)).fetchone()
            if row is None:
                raise _not_found(name)
            box = bytes(row[0])
            try:
                value = self._cipher().decrypt(box[:_NONCE], box[_NONCE:], name.encode())
            except InvalidTag as error:
                raise FreeholdError(
                    "secret.unreadable",
                    f"The secret {name} cannot be decrypted with the key in {self._key_path}",
                    hint=f"Set it again: freehold secret set {name}",
                ) from error
            now = time.time()
            if now - self._noted.get(name, 0.0) > USED_STEP:
                self._noted[name] = now
                database.execute("UPDATE secret SET used_at = ? WHERE name = ?", (now, name))
        return Secret(value.decode())

    def mark(self) -> tuple[int, int, int, int]:
        """Another one whenever a secret was set, removed or noted as used, and once a minute. Does not block."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return (0, 0, 0, 0)
        return (found.st_ino, found.st_mtime_ns, found.st_size, int(time.monotonic() // USED_STEP))

    def list(self) -> list[Kept]:
        if not self._path.exists():
            return []
        with self._opened() as database:
            rows = database.execute("SELECT name, set_at, used_at FROM secret ORDER BY name").fetchall()
        return [Kept(*row) for row in rows]

    def remove(self, name: str) -> None:
        """Raises `secret.not-found`."""
        with self._opened() as database:
            if not database.execute("DELETE FROM secret WHERE name = ?", (name,)).rowcount:
                raise _not_found(name)

    @property
    def _path(self) -> Path:
        return self._folder / "secrets.db"

    @property
    def _key_path(self) -> Path:
        return self._folder / "secrets.key"

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        ensure_private_folder(self._folder)
        self._path.touch(0o600)
        database = sqlite3.connect(self._path, timeout=10, isolation_level=None)
        try:
            # What was removed or replaced is overwritten on the disk, as far as SQLite can.
            database.execute("PRAGMA secure_delete = ON")
            database.execute("PRAGMA synchronous = FULL")
            database.execute(_TABLE)
            database.execute("BEGIN IMMEDIATE")
            yield database
            database.execute("COMMIT")
        except sqlite3.Error as error:
            raise FreeholdError(
                "secret.unreadable", f"The vault cannot be used: {error}", hint=f"Look at {self._path}"
            ) from error
        finally:
            database.close()

    def _cipher(self) -> "AESGCM":
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        return AESGCM(self._read_key())

    def _read_key(self) -> bytes:
        if not self._key_path.exists():
            make_private_file(self._key_path, os.urandom(_KEY))
        key = read_private_file(
            self._key_path,
            code="secret.key",
            remedy=f"If nobody else could have read it: chmod 600 {self._key_path}",
        )
        if len(key) != _KEY:
            raise FreeholdError(
                "secret.key-damaged",
                f"{self._key_path} is not a key of {_KEY} bytes",
                hint=f"Bring it back from a backup, or remove {self._path} and it, and set the secrets again",
            )
        return key


def check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise FreeholdError(
            "secret.bad-name",
            "The name of a secret is made of letters, digits, dots, hyphens and underscores, at most 100",
            hint="freehold secret set openai",
        )


def _not_found(name: str) -> FreeholdError:
    shown = name if NAME.fullmatch(name) else "of that name"
    return FreeholdError(
        "secret.not-found",
        f"There is no secret {shown}",
        hint=f"freehold secret list shows them; freehold secret set {shown}",
    )
