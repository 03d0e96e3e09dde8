"""A cache of rows of the identity database. It is emptied when another process has written to the file."""

import hashlib
import time
from typing import Generic, TypeVar

from freehold.identity.database import IdentityDatabase

T = TypeVar("T")

# More than the largest number of sign-ins or API tokens. It only limits the damage of a bug.
MAX_CACHED = 1_000


class IdentityCache(Generic[T]):
    """Values by the hash of their secret. Not thread-safe: hold the lock of the database.

    A write by another process is noticed within `refresh_interval` seconds; with 0, at the next `get`.
    """

    def __init__(self, database: IdentityDatabase, refresh_interval: float) -> None:
        self._database = database
        self._refresh_interval = refresh_interval
        self._checked_at = float("-inf")
        self._version = database.data_version()
        self._values: dict[bytes, T] = {}

    def get(self, digest: bytes) -> T | None:
        self._clear_if_changed()
        return self._values.get(digest)

    def store(self, digest: bytes, value: T) -> None:
        if len(self._values) >= MAX_CACHED:
            self._values.clear()
        self._values[digest] = value

    def clear(self) -> None:
        self._values.clear()

    def _clear_if_changed(self) -> None:
        if self._refresh_interval:
            now = time.monotonic()
            if now - self._checked_at < self._refresh_interval:
                return
            self._checked_at = now
        version = self._database.data_version()
        if version != self._version:
            self._version = version
            self._values.clear()


def hash_secret(secret: str) -> bytes:
    # A plain hash is enough for 256 random bits, and a lookup by hash leaks nothing through its timing.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
