"""API tokens for scripts and the Python client: shown once, stored as a hash, limited to scopes, revocable."""

import re
import secrets
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal, cast, get_args

from freehold.errors import FreeholdError
from freehold.identity.cache import hash_secret
from freehold.identity.database import increment_revocations
from freehold.identity.store import IdentityStore

Scope = Literal[
    "read",
    "prompt",
    "files",
    "terminal",
    "history",
    "beads",
    "pods",
    "memory",
    "events",
    "orchestrator",
    "neighbour",
    "routines",
    "admin",
]
SCOPES: tuple[Scope, ...] = get_args(Scope)

PREFIX = "fh_"
MAX_TOKENS = 100
NEIGHBOUR_PREFIX = "neighbour-"
"""How the names of the tokens begin that stand for paired Freeholds."""
USE_WRITE_INTERVAL = 60.0
"""Seconds: the time of last use is written at most this often."""
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")


@dataclass(frozen=True)
class ApiToken:
    id: str
    name: str
    scopes: frozenset[Scope]
    did: str | None
    created: float
    expires: float | None
    used: float | None

    def allows(self, scope: Scope) -> bool:
        """Whether the token has this scope. `admin` includes all scopes."""
        return scope in self.scopes or "admin" in self.scopes


class ApiTokens(IdentityStore[ApiToken]):
    """The API tokens of one Freehold, in the same file as its sign-ins."""

    def create(
        self, name: str, scopes: Collection[Scope], expires: float | None, *, limit: int = MAX_TOKENS
    ) -> tuple[ApiToken, str]:
        """A new token and its secret, which is not stored. `expires` is seconds since the epoch; None means never.

        Tokens of neighbours are counted apart: `limit` is for those that are of the same kind as this one.
        """
        now = self._clock()
        _check(name, scopes, expires, now)
        secret = PREFIX + secrets.token_urlsafe(32)
        token = ApiToken(secrets.token_hex(8), name, frozenset(scopes), self.owner, now, expires, None)
        with self._database.transaction() as connection:
            if connection.execute("SELECT 1 FROM tokens WHERE name = ?", (name,)).fetchall():
                raise FreeholdError(
                    "token.exists",
                    f"A token named {name} exists already",
                    hint=f"Choose another name, or revoke that token: freehold token revoke {name}",
                )
            alike = "GLOB" if name.startswith(NEIGHBOUR_PREFIX) else "NOT GLOB"
            sql = f"SELECT count(*) FROM tokens WHERE name {alike} ?"  # noqa: S608 - one of two words
            if connection.execute(sql, (f"{NEIGHBOUR_PREFIX}*",)).fetchone()[0] >= limit:
                raise FreeholdError(
                    "token.too-many",
                    f"There are {limit} tokens already, which is the maximum",
                    hint="Revoke tokens that you do not need: freehold token list, freehold token revoke NAME",
                )
            connection.execute(
                "INSERT INTO tokens (hash, id, did, name, scopes, created, expires) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (hash_secret(secret), token.id, token.did, name, " ".join(sorted(token.scopes)), now, expires),
            )
        return token, secret

    def verify(self, secret: str) -> ApiToken | None:
        """The active token with this secret, else None. Takes microseconds; may be called on the event loop."""
        digest = hash_secret(secret)
        now = self._clock()
        with self._database.lock:
            token = self._cache.get(digest)
            if token is None:
                rows = self._database.query(f"{_SELECT} WHERE hash = ?", (digest,))
                if not rows:
                    return None
                token = _decode(rows[0])
                self._cache.store(digest, token)
            if not self._is_valid(token, now):
                return None
            if token.used is None or now - token.used >= USE_WRITE_INTERVAL:
                token = replace(token, used=now)
                self._cache.store(digest, token)
                self._database.write_best_effort("UPDATE tokens SET used = ? WHERE hash = ?", (now, digest))
            return token

    def is_active(self, token_id: str) -> bool:
        """Whether open sockets and streams of this token may stay open. Does not count as a use of the token."""
        return self.find_active(token_id) is not None

    def find_active(self, token_id: str) -> ApiToken | None:
        """The active token with this id, else None. An id is not a credential: the caller must be trusted already."""
        rows = self._database.query(f"{_SELECT} WHERE id = ?", (token_id,))
        token = _decode(rows[0]) if rows else None
        return token if token is not None and self._is_valid(token, self._clock()) else None

    def list(self) -> list[ApiToken]:
        """All tokens that were not revoked, sorted by name. Expired tokens are included."""
        return [_decode(row) for row in self._database.query(f"{_SELECT} ORDER BY name")]

    def revoke(self, name: str) -> bool:
        """End a token. Idempotent. Returns whether the token existed."""
        with self._database.transaction() as connection:
            ended = connection.execute("DELETE FROM tokens WHERE name = ?", (name,)).rowcount
            if ended:
                increment_revocations(connection)
        self._cache.clear()
        return ended > 0

    def renew(self, name: str, expires: float) -> bool:
        """Change when a token expires. Returns whether the token existed; a revoked token stays revoked."""
        with self._database.transaction() as connection:
            changed = connection.execute("UPDATE tokens SET expires = ? WHERE name = ?", (expires, name)).rowcount
        self._cache.clear()
        return changed > 0

    def _is_valid(self, token: ApiToken, now: float) -> bool:
        return token.did == self.owner and (token.expires is None or now < token.expires)


_SELECT = "SELECT id, name, scopes, did, created, expires, used FROM tokens"


def _decode(row: tuple[object, ...]) -> ApiToken:
    identifier, name, scopes, did, created, expires, used = row
    return ApiToken(
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
            f"{name!r} is not a valid token name",
            hint="Use up to 40 lower-case letters, digits, dots, dashes and underscores, such as backup-script",
        )
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown or not scopes:
        found = f"Unknown scope: {', '.join(unknown)}" if unknown else "A token needs at least one scope"
        raise FreeholdError("token.scope", found, hint=f"The scopes are: {', '.join(SCOPES)}")
    if expires is not None and expires <= now:
        raise FreeholdError(
            "token.expired", "The expiry date is in the past", hint="Give a duration such as 30d, or a later date"
        )
