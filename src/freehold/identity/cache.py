"""What was read of the identity database, for as long as no other process has written to it."""

import hashlib
import time
from typing import Generic, TypeVar

from freehold.identity.database import IdentityDatabase

T = TypeVar("T")

# More than there are sessions or tokens: the bound only keeps a mistake from growing.
_MOST = 1_000


class Remembered(Generic[T]):
    """By the digest of a secret. What another process changes is seen within `patience` seconds. Not thread-safe."""

    def __init__(self, database: IdentityDatabase, patience: float) -> None:
        self._database = database
        self._patience = patience
        self._looked = float("-inf")
        self._foreign = database.foreign_changes()
        self._held: dict[bytes, T] = {}

    def get(self, digest: bytes) -> T | None:
        self._forget_if_changed()
        return self._held.get(digest)

    def put(self, digest: bytes, value: T) -> None:
        if len(self._held) >= _MOST:
            self._held.clear()
        self._held[digest] = value

    def clear(self) -> None:
        self._held.clear()

    def _forget_if_changed(self) -> None:
        if self._patience:
            now = time.monotonic()
            if now - self._looked < self._patience:
                return
            self._looked = now
        foreign = self._database.foreign_changes()
        if foreign != self._foreign:
            self._foreign = foreign
            self._held.clear()


def digest_of(secret: str) -> bytes:
    # A plain hash is enough for 256 random bits, and the lookup by hash tells nothing through its timing.
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()
