"""API tokens for scripts and the Python client: shown once, stored hashed, bound to scopes, revocable."""

import re
import secrets
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, cast, get_args

from freehold.errors import FreeholdError
from freehold.identity.database import IdentityDatabase, count_revocation
from freehold.identity.remembered import Remembered, digest_of

Scope = Literal["read", "prompt", "files", "terminal", "history", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)

PREFIX = "fh_"
MAX_TOKENS = 100
TOUCH_EVERY = 60.0
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")


@dataclass(frozen=True)
class Token:
    id: str
    name: str
    scopes: frozenset[Scope]
    did: str | None
    created: float
    expires: float | None
    used: float | None

    def allows(self, scope: Scope) -> bool:
        """`admin` allows everything; the others only themselves."""
        return scope in self.scopes or "admin" in self.scopes


class Tokens:
    """The tokens of one Freehold, in the same file as its sessions and with the same rules for threads and processes.

    A token belongs to the owner it was made for: after the owner DID changed it is not valid any more.
    """

    def __init__(
        self,
        path: Path,
        *,
        owner: str | None = None,
        clock: Callable[[], float] = time.time,
        patience: float = 0.0,
    ) -> None:
        """What another process changes is seen within `patience` seconds; what this object changes, at once."""
        self.owner = owner
        self._clock = clock
        self._database = IdentityDatabase(path)
        self._cache: Remembered[Token] = Remembered(self._database, patience)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._database.close()

    def create(self, name: str, scopes: Collection[Scope], expires: float | None) -> tuple[Token, str]:
        """A new token and its secret, which is stored nowhere. `expires` is a time since the epoch; None is never."""
        now = self._clock()
        _check(name, scopes, expires, now)
        secret = PREFIX + secrets.token_urlsafe(32)
        token = Token(secrets.token_hex(8), name, frozenset(scopes), self.owner, now, expires, None)
        with self._database.transaction() as connection:
            if connection.execute("SELECT 1 FROM tokens WHERE name = ?", (name,)).fetchall():
                raise FreeholdError(
                    "token.exists",
                    f"There is already a token named {name}",
                    hint=f"Choose another name, or end that one: freehold token revoke {name}",
                )
            if connection.execute("SELECT count(*) FROM tokens").fetchone()[0] >= MAX_TOKENS:
                raise FreeholdError(
                    "token.too-many",
                    f"There are already {MAX_TOKENS} tokens, the most that are kept",
                    hint="End those that are not needed: freehold token list, freehold token revoke NAME",
                )
            connection.execute(
                "INSERT INTO tokens (hash, id, did, name, scopes, created, expires) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (digest_of(secret), token.id, token.did, name, " ".join(sorted(token.scopes)), now, expires),
            )
        return token, secret

    def verify(self, secret: str) -> Token | None:
        """The living token with this secret, else None. Microseconds; may be called on the event loop."""
        digest = digest_of(secret)
        now = self._clock()
        with self._database.lock:
            token = self._cache.get(digest)
            if token is None:
                rows = self._database.query(f"{_SELECT} WHERE hash = ?", (digest,))
                if not rows:
                    return None
                token = _decode(rows[0])
                self._cache.put(digest, token)
            if not self._is_valid(token, now):
                return None
            if token.used is None or now - token.used >= TOUCH_EVERY:
                token = replace(token, used=now)
                self._cache.put(digest, token)
                self._database.note("UPDATE tokens SET used = ? WHERE hash = ?", (now, digest))
            return token

    def alive(self, token_id: str) -> bool:
        """Whether an open socket or stream of this token may stay open. Is not a sign of use."""
        return self.living(token_id) is not None

    def living(self, token_id: str) -> Token | None:
        """The token of this id while it lives. The id opens nothing: who gives it has proved it in another way."""
        rows = self._database.query(f"{_SELECT} WHERE id = ?", (token_id,))
        token = _decode(rows[0]) if rows else None
        return token if token is not None and self._is_valid(token, self._clock()) else None

    def list(self) -> list[Token]:
        """Every token that was not revoked, expired ones included, by name."""
        return [_decode(row) for row in self._database.query(f"{_SELECT} ORDER BY name")]

    def revoke(self, name: str) -> bool:
        """End a token. Idempotent; says whether there was one."""
        with self._database.transaction() as connection:
            ended = connection.execute("DELETE FROM tokens WHERE name = ?", (name,)).rowcount
            if ended:
                count_revocation(connection)
        self._cache.clear()
        return ended > 0

    def renew(self, name: str, expires: float) -> bool:
        """Give a token another end. Says whether there was one; one that was revoked does not come back."""
        with self._database.transaction() as connection:
            changed = connection.execute("UPDATE tokens SET expires = ? WHERE name = ?", (expires, name)).rowcount
        self._cache.clear()
        return changed > 0

    def _is_valid(self, token: Token, now: float) -> bool:
        return token.did == self.owner and (token.expires is None or now < token.expires)


_SELECT = "SELECT id, name, scopes, did, created, expires, used FROM tokens"


def _decode(row: tuple[object, ...]) -> Token:
    identifier, name, scopes, did, created, expires, used = row
    return Token(
        id=cast(str, identifier),
        name=cast(str, name),
        scopes=frozenset(cast("list[Scope]", cast(str, scopes).split())),
        did=cast("str | None", did),
        created=cast(float, created),
        expires=cast("float | None", expires),
        used=cast("float | None", used),
    )


def _check(name: str, scopes: Collection[Scope], expires: float | None, now: float) -> None:
    if not _NAME.fullmatch(name):
        raise FreeholdError(
            "token.name",
            f"{name!r} cannot be a token's name",
            hint="Use up to 40 lower-case letters, digits, dots, dashes and underscores, such as backup-script",
        )
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        found = f"There is no scope {', '.join(unknown)}" if unknown else "A token needs at least one scope"
        raise FreeholdError("token.scope", found, hint=f"The scopes are: {', '.join(SCOPES)}")
    if expires is not None and expires <= now:
        raise FreeholdError(
            "token.expired", "That expiry is in the past", hint="Give a length such as 30d, or a later date"
        )
