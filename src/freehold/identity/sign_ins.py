"""Who is signed in: sessions, and the one-time links that make them without a password.

`verify`, `alive` and `revision` take microseconds and may be called on the event loop; whatever changes something
waits for the disk and belongs in a thread. Every object may be shared by threads, and any number of processes may
have the same file open: a revocation by one is seen by all at their next call.
"""

import asyncio
import base64
import secrets
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, cast

from freehold.errors import FreeholdError
from freehold.identity.database import IdentityDatabase, count_revocation
from freehold.identity.remembered import Remembered, digest_of

COOKIE = "__Host-freehold"
RECOVERY_COOKIE = "__Host-freehold-recovery"  # the keeper's own: ports share cookies, and one must not end the other

Method = Literal["atproto", "link", "recovery"]
Purpose = Literal["browser", "keeper"]

DAY = 86_400.0
IDLE = 7 * DAY
ABSOLUTE = 30 * DAY
LINK_TTL = 600.0
MAX_SESSIONS = 100
MAX_LINKS = 16
TOUCH_EVERY = 60.0
LONGEST_TEXT = 120


@dataclass(frozen=True)
class Session:
    """One signed-in browser. `did` is None when it came by the local link of a Freehold without an owner DID."""

    id: str
    did: str | None
    label: str
    address: str
    method: Method
    created: float
    seen: float
    expires: float


class Sessions:
    """The sessions of one Freehold. `owner` is the configured DID: a session made for anyone else is not valid."""

    def __init__(
        self,
        path: Path,
        *,
        owner: str | None = None,
        idle: float = IDLE,
        absolute: float = ABSOLUTE,
        clock: Callable[[], float] = time.time,
        patience: float = 0.0,
    ) -> None:
        """What another process changes is seen within `patience` seconds; what this object changes, at once."""
        self.owner = owner
        self._idle = idle
        self._absolute = absolute
        self._clock = clock
        self._database = IdentityDatabase(path)
        self._cache: Remembered[Session] = Remembered(self._database, patience)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    # Sessions

    def create(
        self, did: str | None, *, label: str, address: str, method: Method, replaces: str | None = None
    ) -> tuple[Session, str]:
        """Sign in: a fresh session and the secret for its cookie, which is stored nowhere.

        `replaces` is the secret of the cookie that the browser already had; that session ends in the same step.
        """
        now = self._clock()
        secret = secrets.token_urlsafe(32)
        session = Session(
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
            if replaces is not None and _delete(connection, "hash = ?", digest_of(replaces)):
                count_revocation(connection)
            self._insert(connection, session, secret, now)
        self._cache.clear()
        return session, secret

    def verify(self, secret: str, *, recovery: bool = False) -> Session | None:
        """The living session of this secret, else None. A recovery session counts only where `recovery` is asked for."""
        digest = digest_of(secret)
        now = self._clock()
        with self._database.lock:
            session = self._cache.get(digest)
            if session is None:
                session = self._find("hash = ?", digest)
                if session is None:
                    return None
                self._cache.put(digest, session)
            if not self._is_valid(session, now) or (session.method == "recovery" and not recovery):
                return None
            if now - session.seen >= TOUCH_EVERY:
                session = replace(session, seen=now)
                self._cache.put(digest, session)
                self._database.note("UPDATE sessions SET seen = ? WHERE hash = ?", (now, digest))
            return session

    def alive(self, session_id: str) -> bool:
        """Whether an open socket or stream of this session may stay open. Needs no secret and is not a sign of use."""
        return self.living(session_id) is not None

    def living(self, session_id: str) -> Session | None:
        """The session of this id while it lives. The id opens nothing: who gives it has proved it in another way."""
        session = self._find("id = ?", session_id)
        return session if session is not None and self._is_valid(session, self._clock()) else None

    def rotate(self, secret: str) -> tuple[Session, str] | None:
        """A new id and secret for a living session; the old ones end at once, and the absolute limit stays."""
        now = self._clock()
        fresh = secrets.token_urlsafe(32)
        with self._database.transaction() as connection:
            old = self._find("hash = ?", digest_of(secret))
            if old is None or not self._is_valid(old, now):
                return None
            session = replace(old, id=secrets.token_hex(8), seen=now)
            _delete(connection, "id = ?", old.id)
            count_revocation(connection)
            self._insert(connection, session, fresh, now)
        self._cache.clear()
        return session, fresh

    def list(self) -> list[Session]:
        """Every living session, the last used first."""
        now = self._clock()
        rows = self._database.query(f"{_SELECT} ORDER BY seen DESC, id")
        return [session for session in map(self._decode, rows) if self._is_valid(session, now)]

    def revoke(self, session_id: str) -> bool:
        """End one session. Idempotent; says whether there was one."""
        return self._revoke("id = ?", session_id) > 0

    def revoke_secret(self, secret: str) -> bool:
        """Sign out: end the session whose cookie this is. Idempotent; says whether there was one."""
        return self._revoke("hash = ?", digest_of(secret)) > 0

    def revoke_all(self, except_id: str | None = None) -> int:
        """Sign out everywhere, outstanding links and unfinished sign-ins included; says how many sessions ended."""
        return self._revoke("id IS NOT ?", except_id, and_pending=True)

    # One-time links

    def create_link(self, purpose: Purpose = "browser", ttl: float = LINK_TTL) -> str:
        """A token that signs in one browser, once. For `keeper` it is a code short enough to be typed.

        The browser's link exists only while no owner DID is configured: with one, identity is proven, not handed over.
        """
        if purpose == "browser" and self.owner is not None:
            raise FreeholdError(
                "identity.link-not-allowed",
                "This Freehold has an owner DID, so there is no sign-in link",
                hint="Sign in with AT Protocol: freehold open shows the page",
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
        self, token: str, *, label: str, address: str, purpose: Purpose = "browser", replaces: str | None = None
    ) -> tuple[Session, str] | None:
        """Exchange a link for a session: of any number of tries, in any processes, at most one gets it."""
        if purpose == "browser" and self.owner is not None:
            return None
        now = self._clock()
        with self._database.transaction() as connection:
            taken = connection.execute(
                "DELETE FROM links WHERE hash = ? AND purpose = ? AND expires > ? AND created <= ? RETURNING 1",
                (_link_digest(token, purpose), purpose, now, now + TOUCH_EVERY),
            ).fetchall()
        if not taken:
            return None
        method: Method = "recovery" if purpose == "keeper" else "link"
        return self.create(self.owner, label=label, address=address, method=method, replaces=replaces)

    # What other processes did

    def revision(self) -> int:
        """How often anything was revoked, by any process. Cheap enough to poll several times a second."""
        ((count,),) = self._database.query("SELECT count FROM revocations")
        return cast(int, count)

    async def watch_revocations(self, interval: float = 0.25) -> AsyncIterator[int]:
        """Yields the revision whenever something was revoked, within `interval`; then ask `alive` for each socket."""
        known = self.revision()
        while True:
            await asyncio.sleep(interval)
            if (current := self.revision()) != known:
                known = current
                yield current

    # Inside

    def _insert(self, connection: sqlite3.Connection, session: Session, secret: str, now: float) -> None:
        ended = _delete(connection, "created <= ? OR seen <= ?", now - self._absolute, now - self._idle)
        ended += _delete(
            connection,
            "hash IN (SELECT hash FROM sessions ORDER BY seen DESC LIMIT -1 OFFSET ?)",
            MAX_SESSIONS - 1,
        )
        if ended:
            count_revocation(connection)
        connection.execute(
            "INSERT INTO sessions (hash, id, did, label, address, method, created, seen) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                digest_of(secret),
                session.id,
                session.did,
                session.label,
                session.address,
                session.method,
                session.created,
                session.seen,
            ),
        )

    def _revoke(self, where: str, value: object, *, and_pending: bool = False) -> int:
        with self._database.transaction() as connection:
            ended = _delete(connection, where, value)
            if and_pending:
                connection.execute("DELETE FROM links")
                connection.execute("DELETE FROM sign_ins")
            if ended:
                count_revocation(connection)
        self._cache.clear()
        return ended

    def _find(self, where: str, value: object) -> Session | None:
        rows = self._database.query(f"{_SELECT} WHERE {where}", (value,))
        return self._decode(rows[0]) if rows else None

    def _decode(self, row: tuple[object, ...]) -> Session:
        identifier, did, label, address, method, created, seen = row
        return Session(
            id=cast(str, identifier),
            did=cast("str | None", did),
            label=cast(str, label),
            address=cast(str, address),
            method=cast(Method, method),
            created=cast(float, created),
            seen=cast(float, seen),
            expires=cast(float, created) + self._absolute,
        )

    def _is_valid(self, session: Session, now: float) -> bool:
        return session.did == self.owner and now < session.expires and now - session.seen < self._idle


_SELECT = "SELECT id, did, label, address, method, created, seen FROM sessions"


def _delete(connection: sqlite3.Connection, where: str, *values: object) -> int:
    return connection.execute(f"DELETE FROM sessions WHERE {where}", values).rowcount  # noqa: S608 - `where` is ours


def _link_digest(token: str, purpose: Purpose) -> bytes:
    if purpose == "keeper":
        token = "".join(character for character in token.upper() if character.isalnum())
    return digest_of(f"{purpose}:{token}")


def _recovery_code() -> str:
    """A hundred random bits in letters that can be read aloud: ABCDE-FGHIJ-KLMNO-PQRST."""
    text = base64.b32encode(secrets.token_bytes(13)).decode()[:20]
    return "-".join(text[start : start + 5] for start in range(0, 20, 5))


def _printable(text: str) -> str:
    """Labels come from browsers: nothing that could speak to a terminal, and not too much of it."""
    return "".join(character if character.isprintable() else " " for character in text)[:LONGEST_TEXT]
