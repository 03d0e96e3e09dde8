"""Sign-in attempts that wait for the callback: stored encrypted, readable once, removed after ten minutes."""

import hashlib
import secrets
from collections.abc import Callable
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from freehold.identity.database import IdentityDatabase

ATTEMPT_TTL = 600.0
MAX_ATTEMPTS = 500


class OtherBrowserError(Exception):
    """The attempt exists, but it was started in another browser."""


class SignInAttempts:
    """An attempt can be decrypted only with both its state, which travels through the authorization server, and its
    binding, a cookie of the browser that started it. The database has neither."""

    def __init__(self, path: Path, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._database = IdentityDatabase(path)

    def close(self) -> None:
        self._database.close()

    def store(self, state: str, binding: str, record: bytes) -> None:
        now = self._clock()
        nonce = secrets.token_bytes(12)
        sealed = nonce + AESGCM(_key(state, binding)).encrypt(nonce, record, None)
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM sign_ins WHERE expires <= ?", (now,))
            connection.execute(
                "DELETE FROM sign_ins WHERE hash IN (SELECT hash FROM sign_ins ORDER BY created DESC LIMIT -1 OFFSET ?)",
                (MAX_ATTEMPTS - 1,),
            )
            connection.execute(
                "INSERT INTO sign_ins VALUES (?, ?, ?, ?)", (_hash(state), now, now + ATTEMPT_TTL, sealed)
            )

    def take(self, state: str, binding: str | None) -> bytes | None:
        """Remove the attempt with this state and return its record; None when there is none or it expired.

        Raises OtherBrowserError when the binding does not match. The attempt is removed in each case.
        """
        with self._database.transaction() as connection:
            rows = connection.execute(
                "DELETE FROM sign_ins WHERE hash = ? RETURNING sealed, expires", (_hash(state),)
            ).fetchall()
        if not rows or rows[0][1] <= self._clock():
            return None
        sealed: bytes = rows[0][0]
        try:
            return AESGCM(_key(state, binding or "")).decrypt(sealed[:12], sealed[12:], None)
        except InvalidTag:
            raise OtherBrowserError from None


def _hash(state: str) -> bytes:
    return hashlib.sha256(b"state:" + state.encode("utf-8", "surrogatepass")).digest()


def _key(state: str, binding: str) -> bytes:
    joined = f"{len(state)}:{state}:{binding}".encode("utf-8", "surrogatepass")
    return hashlib.sha256(b"sign-in:" + joined).digest()
