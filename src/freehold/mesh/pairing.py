"""Pairing by a one-time code: one owner makes it, the other owner enters it at the other Freehold."""

import base64
import binascii
import hashlib
import json
import secrets
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from freehold.errors import FreeholdError
from freehold.mesh.grants import Grant
from freehold.mesh.neighbours import read_grants
from freehold.mesh.nostr.keys import is_hex, show_key
from freehold.mesh.peer_address import check_address
from freehold.timeline import Timeline

PREFIX = "freehold-pair:"
LIFETIME = 600.0
MAX_CODES = 20
MAX_TEXT = 2_000


@dataclass(frozen=True)
class PairingCode:
    """Where the other Freehold is, its key, and a secret that works once."""

    url: str
    pubkey: str
    secret: str

    @property
    def npub(self) -> str:
        return show_key(self.pubkey)

    def write(self) -> str:
        body = json.dumps([self.url, self.pubkey, self.secret], separators=(",", ":"))
        return PREFIX + base64.urlsafe_b64encode(body.encode()).decode().rstrip("=")


def read_code(text: str) -> PairingCode:
    """Raises `mesh.bad-value` for what is not a code."""
    text = text.strip().rpartition("#")[2]
    body = text.removeprefix(PREFIX)
    parts: object = None
    if len(text) <= MAX_TEXT and text.startswith(PREFIX):
        with suppress(ValueError, binascii.Error, RecursionError):
            parts = json.loads(base64.b64decode(body + "=" * (-len(body) % 4), altchars=b"-_", validate=True))
    match parts:
        case [str(url), str(pubkey), str(secret)] if is_hex(pubkey, 64) and len(secret) <= 100:
            return PairingCode(check_address(url), pubkey, secret)
    raise FreeholdError(
        "mesh.bad-value",
        "This is not a pairing code",
        hint=f"Copy all of it; it begins with {PREFIX}. freehold mesh pair --new makes one on the other Freehold",
    )


class PairingCodes:
    """The codes that were made here and not used yet. Only their hashes are stored. Every call blocks."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline

    def create(self, grants: Iterable[Grant], name: str | None) -> tuple[str, float]:
        """The secret of a new code, and when it expires."""
        now = time.time()
        secret = secrets.token_urlsafe(24)
        with self._timeline.transaction() as tx:
            tx.execute("DELETE FROM mesh_code WHERE expires < ?", (now,))
            if tx.execute("SELECT count(*) FROM mesh_code").fetchone()[0] >= MAX_CODES:
                raise FreeholdError(
                    "mesh.too-many",
                    f"There are {MAX_CODES} unused pairing codes",
                    hint="They expire within ten minutes",
                )
            tx.execute(
                "INSERT INTO mesh_code (hash, name, grants, created, expires) VALUES (?, ?, ?, ?, ?)",
                (_hash(secret), name, json.dumps(sorted(grants)), now, now + LIFETIME),
            )
        return secret, now + LIFETIME

    def take(self, secret: str) -> tuple[str | None, frozenset[Grant]]:
        """The name and the grants of a code, which is used up. Raises `mesh.code-expired`."""
        with self._timeline.transaction() as tx:
            row = tx.execute(
                "DELETE FROM mesh_code WHERE hash = ? AND expires >= ? RETURNING name, grants",
                (_hash(secret), time.time()),
            ).fetchone()
        if row is None:
            raise _no_code()
        return row[0], read_grants(json.loads(row[1]))

    def require(self, secret: str) -> None:
        """Raises `mesh.code-expired` unless the code can be used."""
        sql = "SELECT 1 FROM mesh_code WHERE hash = ? AND expires >= ?"
        if not self._timeline.query(sql, (_hash(secret), time.time())):
            raise _no_code()


def _no_code() -> FreeholdError:
    return FreeholdError(
        "mesh.code-expired",
        "This pairing code was used already or is older than ten minutes",
        hint="Make a new one on the Freehold that made it: freehold mesh pair --new",
    )


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
