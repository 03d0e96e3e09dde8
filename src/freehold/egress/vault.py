"""The owner's secrets, encrypted on disk. Only the code that sends a secret out reads its value.

The key is in the same folder, readable only by the owner's user. This keeps secrets out of logs and out of a copied
database. It does not protect them from someone who can act as that user on this machine.
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
from freehold.observe.secrets import MASK, Secret
from freehold.private_file import make_private_file, read_private_file
from freehold.strict_json import EpochSeconds

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
MAX_BYTES = 64 * 1024
MAX_SECRETS = 1_000
MIN_MASKED = 6
"""Characters. A shorter secret would mask words of every text."""
USE_RECORD_INTERVAL = 60.0
"""Seconds between two records of a last use, so that not every use costs a write."""

_NONCE = 12
_KEY = 32
_TABLE = """
    CREATE TABLE IF NOT EXISTS secret (
      name TEXT PRIMARY KEY, box BLOB NOT NULL, set_at REAL NOT NULL, used_at REAL
    ) STRICT
"""


@dataclass(frozen=True)
class SecretInfo:
    """Everything about a secret except its value."""

    name: str
    set_at: EpochSeconds
    used_at: EpochSeconds | None


class Vault:
    """Secrets by name in `folder`. Every call blocks and opens the file anew, so several processes can use it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._noted: dict[str, float] = {}

    def set(self, name: str, value: str) -> None:
        """Stores a secret and replaces one of the same name. Raises `secret.bad-name`, `.empty` or `.too-large`."""
        check_name(name)
        if not value or value != value.strip() or not value.isprintable():
            raise FreeholdError(
                "secret.empty",
                "A secret must be one line of printable characters without blanks around it",
                hint="Copy it again from where it was issued",
            )
        data = value.encode()
        if len(data) > MAX_BYTES:
            raise FreeholdError("secret.too-large", f"A secret can have at most {MAX_BYTES} bytes")
        nonce = os.urandom(_NONCE)
        with self._opened() as database:
            if database.execute("SELECT count(*) FROM secret WHERE name != ?", (name,)).fetchone()[0] >= MAX_SECRETS:
                raise FreeholdError("secret.too-many", f"The vault already has {MAX_SECRETS} secrets")
            box = nonce + self._cipher().encrypt(nonce, data, name.encode())
            database.execute(
                "INSERT OR REPLACE INTO secret (name, box, set_at) VALUES (?, ?, ?)", (name, box, time.time())
            )

    def get(self, name: str) -> Secret:
        """Raises `secret.not-found`, or `secret.unreadable` when it was changed or the key is wrong."""
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
            if now - self._noted.get(name, 0.0) > USE_RECORD_INTERVAL:
                self._noted[name] = now
                database.execute("UPDATE secret SET used_at = ? WHERE name = ?", (now, name))
        return Secret(value.decode())

    def mask(self, text: str) -> str:
        """The text without the value of any secret. This is no use of them."""
        from cryptography.exceptions import InvalidTag

        if not self._path.exists():
            return text
        with self._opened() as database:
            rows = database.execute("SELECT name, box FROM secret").fetchall()
        for name, box in rows:
            try:
                value = self._cipher().decrypt(bytes(box)[:_NONCE], bytes(box)[_NONCE:], name.encode()).decode()
            except InvalidTag:
                continue
            if len(value) >= MIN_MASKED:
                text = text.replace(value, MASK)
        return text

    def read_version(self) -> tuple[int, int, int, int]:
        """A value that changes when a secret was set, removed or used, and once a minute. Does not block."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return (0, 0, 0, 0)
        return (found.st_ino, found.st_mtime_ns, found.st_size, int(time.monotonic() // USE_RECORD_INTERVAL))

    def list(self) -> list[SecretInfo]:
        if not self._path.exists():
            return []
        with self._opened() as database:
            rows = database.execute("SELECT name, set_at, used_at FROM secret ORDER BY name").fetchall()
        return [SecretInfo(*row) for row in rows]

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
            # Removed or replaced secrets are overwritten on disk, as far as SQLite can.
            database.execute("PRAGMA secure_delete = ON")
            database.execute("PRAGMA synchronous = FULL")
            database.execute(_TABLE)
            database.execute("BEGIN IMMEDIATE")
            yield database
            database.execute("COMMIT")
        except sqlite3.Error as error:
            raise FreeholdError(
                "secret.unreadable", f"The vault cannot be used: {error}", hint=f"Check {self._path}"
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
                hint=f"Restore it from a backup, or remove it and {self._path}, and set the secrets again",
            )
        return key


def check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise FreeholdError(
            "secret.bad-name",
            "The name of a secret has at most 100 letters, digits, dots, hyphens and underscores",
            hint="Example: freehold secret set openai",
        )


def _not_found(name: str) -> FreeholdError:
    shown = name if NAME.fullmatch(name) else "of that name"
    return FreeholdError(
        "secret.not-found",
        f"There is no secret {shown}",
        hint=f"freehold secret list shows the names; freehold secret set {shown} adds it",
    )
