"""Sign-ins (signed-in browsers), and the one-time links that create them without a password.

`verify`, `is_active` and `revocation_count` take microseconds and may be called on the event loop. Methods that write
wait for the disk: call them in a thread. Any number of processes may have the same file open; a revocation by one is
seen by all others at their next call.
"""

import base64
import secrets
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

from freehold.errors import FreeholdError
from freehold.identity.cache import hash_secret
from freehold.identity.database import increment_revocations
from freehold.identity.store import IdentityStore
from freehold.strict_json import EpochSeconds

CONTROL_CENTER_NAME = "freehold.localhost"
RECOVERY_NAME = "recovery.localhost"
"""Names of this machine that only the control center and the recovery page have. Other programs use `localhost`."""
RECOVERY_COOKIE = "__Host-freehold-recovery"
COOKIE_OF_0_1 = "__Host-freehold"
"""Version 0.1 signed browsers in with this cookie. It is only deleted now: a browser sends cookies to every port."""

SignInMethod = Literal["atproto", "link", "recovery"]
LinkPurpose = Literal["browser", "keeper", "atproto"]
"""`atproto` is not a link of the owner's: it carries a finished AT Protocol sign-in to the page that keeps the key."""

DAY = 86_400.0
IDLE_SECONDS = 7 * DAY
ABSOLUTE_SECONDS = 30 * DAY
LINK_TTL = 600.0
HANDOVER_TTL = 60.0
MAX_SIGN_INS = 100
MAX_LINKS = 16
USE_WRITE_INTERVAL = 60.0
"""Seconds: the time of last use is written at most this often."""
MAX_LABEL_CHARS = 120


@dataclass(frozen=True)
class SignIn:
    """One signed-in browser. `did` is None when it signed in by link and no owner DID is configured."""

    id: str
    did: str | None
    label: str
    address: str
    method: SignInMethod
    created: EpochSeconds
    seen: EpochSeconds
    expires: EpochSeconds


class SignIns(IdentityStore[SignIn]):
    """The sign-ins and the one-time links of one Freehold."""

    def __init__(
        self,
        path: Path,
        *,
        owner: str | None = None,
        idle: float = IDLE_SECONDS,
        absolute: float = ABSOLUTE_SECONDS,
        clock: Callable[[], float] = time.time,
        refresh_interval: float = 0.0,
    ) -> None:
        """A sign-in ends `idle` seconds after its last use, and `absolute` seconds after it was created."""
        super().__init__(path, owner=owner, clock=clock, refresh_interval=refresh_interval)
        self._idle = idle
        self._absolute = absolute

    # Sign-ins

    def create(
        self, did: str | None, *, label: str, address: str, method: SignInMethod, replaces: str | None = None
    ) -> tuple[SignIn, str]:
        """Sign in one browser. Returns the sign-in and its secret, which is not stored here.

        `replaces` is the id of the sign-in that the browser had before. That one ends in the same transaction.
        """
        now = self._clock()
        secret = secrets.token_urlsafe(32)
        sign_in = SignIn(
            id=secrets.token_hex(8),
            did=did,
            label=_printable(label),
            address=_printable(address),
            method=method,
            created=now,
            seen=now,
            expires=now + self._absolute,
        )
        with self._database.transaction() as connection:
            if replaces is not None and _delete(connection, "id = ?", replaces):
                increment_revocations(connection)
            self._insert(connection, sign_in, secret, now)
        self._cache.clear()
        return sign_in, secret

    def verify(self, secret: str, *, recovery: bool = False) -> SignIn | None:
        """The active sign-in with this secret, else None. A sign-in by recovery code is found only with `recovery`."""
        digest = hash_secret(secret)
        now = self._clock()
        with self._database.lock:
            sign_in = self._cache.get(digest)
            if sign_in is None:
                sign_in = self._find("hash = ?", digest)
                if sign_in is None:
                    return None
                self._cache.store(digest, sign_in)
            if not self._is_valid(sign_in, now) or (sign_in.method == "recovery" and not recovery):
                return None
            if now - sign_in.seen >= USE_WRITE_INTERVAL:
                sign_in = replace(sign_in, seen=now)
                self._cache.store(digest, sign_in)
                self._database.write_best_effort("UPDATE sessions SET seen = ? WHERE hash = ?", (now, digest))
            return sign_in

    def is_active(self, sign_in_id: str) -> bool:
        """Whether open sockets and streams of this sign-in may stay open. Does not count as a use of the sign-in."""
        return self.find_active(sign_in_id) is not None

    def find_active(self, sign_in_id: str) -> SignIn | None:
        """The active sign-in with this id, else None. An id is not a credential: the caller must be trusted already."""
        sign_in = self._find("id = ?", sign_in_id)
        return sign_in if sign_in is not None and self._is_valid(sign_in, self._clock()) else None

    def list(self) -> list[SignIn]:
        """All active sign-ins, the most recently used first."""
        now = self._clock()
        rows = self._database.query(f"{_SELECT} ORDER BY seen DESC, id")
        return [sign_in for sign_in in map(self._decode, rows) if self._is_valid(sign_in, now)]

    def revoke(self, sign_in_id: str) -> bool:
        """End one sign-in. Idempotent. Returns whether it existed."""
        return self._revoke("id = ?", sign_in_id) > 0

    def revoke_all(self, except_id: str | None = None) -> int:
        """Sign out everywhere; also drops unused links and unfinished sign-in attempts. Returns how many sign-ins ended."""
        return self._revoke("id IS NOT ?", except_id, and_pending=True)

    # One-time links

    def create_link(self, purpose: LinkPurpose = "browser", ttl: float = LINK_TTL) -> str:
        """A token that signs in one browser, once. For `keeper` it is a code that is short enough to type.

        A link for `browser` is refused when an owner DID is configured: then the owner signs in with AT Protocol.
        Create one for `atproto` only after the owner has proven the DID.
        """
        if purpose == "browser" and self.owner is not None:
            raise FreeholdError(
                "identity.link-not-allowed",
                "Sign-in links are disabled because an owner DID is configured",
                hint="Sign in with AT Protocol: freehold open shows the sign-in page",
            )
        token = _recovery_code() if purpose == "keeper" else secrets.token_urlsafe(32)
        now = self._clock()
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM links WHERE expires <= ?", (now,))
            connection.execute(
                "DELETE FROM links WHERE hash IN (SELECT hash FROM links ORDER BY created DESC LIMIT -1 OFFSET ?)",
                (MAX_LINKS - 1,),
            )
            connection.execute(
                "INSERT INTO links VALUES (?, ?, ?, ?)", (_link_digest(token, purpose), purpose, now, now + ttl)
            )
        return token

    def redeem_link(
        self, token: str, *, label: str, address: str, purpose: LinkPurpose = "browser", replaces: str | None = None
    ) -> tuple[SignIn, str] | None:
        """Exchange a link for a sign-in. Of all attempts in all processes, at most one succeeds."""
        if (purpose == "browser" and self.owner is not None) or (purpose == "atproto" and self.owner is None):
            return None
        now = self._clock()
        with self._database.transaction() as connection:
            taken = connection.execute(
                "DELETE FROM links WHERE hash = ? AND purpose = ? AND expires > ? AND created <= ? RETURNING 1",
                (_link_digest(token, purpose), purpose, now, now + USE_WRITE_INTERVAL),
            ).fetchall()
        if not taken:
            return None
        method = _METHODS[purpose]
        return self.create(self.owner, label=label, address=address, method=method, replaces=replaces)

    # Revocations

    def revocation_count(self) -> int:
        """How many revocations there were, by any process. Cheap enough to poll several times a second."""
        ((count,),) = self._database.query("SELECT count FROM revocations")
        return cast(int, count)

    # Inside

    def _insert(self, connection: sqlite3.Connection, sign_in: SignIn, secret: str, now: float) -> None:
        ended = _delete(connection, "created <= ? OR seen <= ?", now - self._absolute, now - self._idle)
        ended += _delete(
            connection,
            "hash IN (SELECT hash FROM sessions ORDER BY seen DESC LIMIT -1 OFFSET ?)",
            MAX_SIGN_INS - 1,
        )
        if ended:
            increment_revocations(connection)
        connection.execute(
            "INSERT INTO sessions (hash, id, did, label, address, method, created, seen) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                hash_secret(secret),
                sign_in.id,
                sign_in.did,
                sign_in.label,
                sign_in.address,
                sign_in.method,
                sign_in.created,
                sign_in.seen,
            ),
        )

    def _revoke(self, where: str, value: object, *, and_pending: bool = False) -> int:
        with self._database.transaction() as connection:
            ended = _delete(connection, where, value)
            if and_pending:
                connection.execute("DELETE FROM links")
                connection.execute("DELETE FROM sign_ins")
            if ended:
                increment_revocations(connection)
        self._cache.clear()
        return ended

    def _find(self, where: str, value: object) -> SignIn | None:
        rows = self._database.query(f"{_SELECT} WHERE {where}", (value,))
        return self._decode(rows[0]) if rows else None

    def _decode(self, row: tuple[object, ...]) -> SignIn:
        identifier, did, label, address, method, created, seen = row
        return SignIn(
            id=cast(str, identifier),
            did=cast("str | None", did),
            label=cast(str, label),
            address=cast(str, address),
            method=cast(SignInMethod, method),
            created=cast(float, created),
            seen=cast(float, seen),
            expires=cast(float, created) + self._absolute,
        )

    def _is_valid(self, sign_in: SignIn, now: float) -> bool:
        return sign_in.did == self.owner and now < sign_in.expires and now - sign_in.seen < self._idle


_METHODS: dict[LinkPurpose, SignInMethod] = {"browser": "link", "keeper": "recovery", "atproto": "atproto"}
_SELECT = "SELECT id, did, label, address, method, created, seen FROM sessions"


def control_center_url(port: int, public_url: str | None) -> str:
    """The address of the control center for the owner's browser."""
    return public_url.rstrip("/") if public_url else f"http://{CONTROL_CENTER_NAME}:{port}"


def recovery_url(port: int) -> str:
    """The address of the recovery page for a browser on this machine."""
    return f"http://{RECOVERY_NAME}:{port}"


def split_secret(secret: str) -> tuple[str, str]:
    """The two halves of a recovery secret, 120 random bits or more each: for the cookie, and for the address.

    A browser sends a cookie to every port of its host, and an address to one. Neither half is enough.
    """
    middle = len(secret) // 2
    return secret[:middle], secret[middle:]


def _delete(connection: sqlite3.Connection, where: str, *values: object) -> int:
    return connection.execute(f"DELETE FROM sessions WHERE {where}", values).rowcount  # noqa: S608 - `where` is ours


def _link_digest(token: str, purpose: LinkPurpose) -> bytes:
    if purpose == "keeper":
        token = "".join(character for character in token.upper() if character.isalnum())
    return hash_secret(f"{purpose}:{token}")


def _recovery_code() -> str:
    """100 random bits as text that can be read aloud: ABCDE-FGHIJ-KLMNO-PQRST."""
    text = base64.b32encode(secrets.token_bytes(13)).decode()[:20]
    return "-".join(text[start : start + 5] for start in range(0, 20, 5))


def _printable(text: str) -> str:
    """A label comes from a browser: remove control characters, which a terminal would obey, and shorten it."""
    return "".join(character if character.isprintable() else " " for character in text)[:MAX_LABEL_CHARS]
