"""Stable pseudonyms for private parts. What each stands for is kept in this home, sealed by a key of its own."""

import base64
import hashlib
import hmac
import os
import re
import threading
from collections.abc import Sequence
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from freehold.private_file import make_private_file, read_private_file
from freehold.slots.privacy.detectors import KINDS, PrivateKind
from freehold.timeline import Timeline

KEY_FILE = "privacy.key"
_NAME = re.compile(rf"\[(?P<kind>{'|'.join(KINDS)}) (?P<name>[a-z2-7]{{12}})\]")
_NONCE = 12
_MAX_KNOWN = 10_000
SCHEMA = (
    "CREATE TABLE privacy_pseudonym (name TEXT PRIMARY KEY, kind TEXT NOT NULL, sealed BLOB NOT NULL,"
    " at DOUBLE PRECISION NOT NULL)",
)


class Pseudonyms:
    """The same value has the same pseudonym for ever. Nobody can tell a value from it without this home's key.

    Blocking. Safe in several threads.
    """

    def __init__(self, folder: Path, timeline: Timeline) -> None:
        self._folder = folder
        self._timeline = timeline
        self._lock = threading.Lock()
        self._keys: tuple[bytes, AESGCM] | None = None
        self._known: dict[str, str] = {}

    def replace(self, found: Sequence[tuple[PrivateKind, str]], now: float) -> list[str]:
        """The pseudonym of each value. What they stand for is stored before they are given out."""
        names = [self._name(kind, value) for kind, value in found]
        new = {
            name: (kind, value)
            for name, (kind, value) in zip(names, found, strict=True)
            if self._known.get(name) != value
        }
        if new:
            with self._timeline.transaction() as tx:
                for name, (kind, value) in new.items():
                    tx.execute(
                        "INSERT INTO privacy_pseudonym (name, kind, sealed, at) VALUES (?, ?, ?, ?)"
                        " ON CONFLICT (name) DO NOTHING",
                        (name, kind, self._seal(name, value), now),
                    )
            self._remember({name: value for name, (_, value) in new.items()})
        return [f"[{kind} {name}]" for name, (kind, _) in zip(names, found, strict=True)]

    def restore(self, text: str) -> str:
        """The text with what its pseudonyms stand for. Those of another home stay."""
        if "[" not in text or (found := list(_NAME.finditer(text))) == []:
            return text
        values = {match["name"]: self._find(match["name"]) for match in found}
        return _NAME.sub(lambda match: values[match["name"]] or match[0], text)

    def _find(self, name: str) -> str | None:
        known = self._known.get(name)
        if known is not None:
            return known
        self._load()
        rows = self._timeline.query("SELECT sealed FROM privacy_pseudonym WHERE name = ?", (name,))
        value = self._open(name, rows[0][0]) if rows else None
        if value is not None:
            self._remember({name: value})
        return value

    def _remember(self, values: dict[str, str]) -> None:
        with self._lock:
            if len(self._known) + len(values) > _MAX_KNOWN:
                self._known.clear()
            self._known.update(values)

    def _name(self, kind: PrivateKind, value: str) -> str:
        digest = hmac.digest(self._load()[0], f"{kind}\0{value}".encode("utf-8", "surrogatepass"), hashlib.sha256)
        return base64.b32encode(digest).decode().lower()[:12]

    def _seal(self, name: str, value: str) -> bytes:
        nonce = os.urandom(_NONCE)
        return nonce + self._load()[1].encrypt(nonce, value.encode("utf-8", "surrogatepass"), name.encode())

    def _open(self, name: str, sealed: bytes) -> str | None:
        try:
            opened = self._load()[1].decrypt(sealed[:_NONCE], sealed[_NONCE:], name.encode())
        except (InvalidTag, ValueError):
            return None
        return opened.decode("utf-8", "surrogatepass")

    def _load(self) -> tuple[bytes, AESGCM]:
        """The two keys. Made at the first use; two processes that make it at once use the same one."""
        with self._lock:
            if self._keys is None:
                self._timeline.ensure_schema("privacy", *SCHEMA)
                master = _read_key(self._folder / KEY_FILE)
                name = hmac.digest(master, b"name", hashlib.sha256)
                self._keys = name, AESGCM(hmac.digest(master, b"seal", hashlib.sha256))
            return self._keys


def _read_key(path: Path) -> bytes:
    if not path.exists():
        make_private_file(path, os.urandom(32))
    return read_private_file(path, code="privacy.key", remedy=f"chmod 600 {path}")
