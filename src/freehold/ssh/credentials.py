"""The store of issued SSH credentials (certificates and plain keys), in the database of the timeline.

It has public keys only. Issuing and revoking commit together with their timeline event. All calls block on the disk.
"""

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from freehold.errors import FreeholdError
from freehold.ssh.keys import fingerprint
from freehold.timeline import Timeline

Kind = Literal["certificate", "key"]
MAX_ACTIVE = 200
MAX_LIFETIME = 86_400
"""Seconds; no setting makes a credential valid for longer."""

_SCHEMA = """
CREATE TABLE ssh_credential (
    id TEXT PRIMARY KEY, kind TEXT NOT NULL, serial INTEGER NOT NULL, fingerprint TEXT NOT NULL, key_id TEXT NOT NULL,
    label TEXT NOT NULL, source TEXT NOT NULL, address TEXT NOT NULL, created REAL NOT NULL, expires REAL NOT NULL,
    revoked REAL, used REAL, used_from TEXT
);
CREATE INDEX ssh_credential_fingerprint ON ssh_credential (fingerprint);
CREATE INDEX ssh_credential_serial ON ssh_credential (serial);
"""
_SELECT = (
    "SELECT id, kind, serial, fingerprint, key_id, label, source, address, created, expires, revoked, used, used_from"
    " FROM ssh_credential"
)


@dataclass(frozen=True)
class Credential:
    """A credential is valid only while its `source` is: `session:ID` (a sign-in), `token:ID`, or `local` (this machine)."""

    id: str
    kind: Kind
    serial: int
    fingerprint: str
    key_id: str
    label: str
    source: str
    address: str
    created: float
    expires: float
    revoked: float | None = None
    used: float | None = None
    used_from: str | None = None

    def is_valid_at(self, now: float) -> bool:
        return self.revoked is None and self.created - 1 <= now < self.expires


class CredentialStore:
    def __init__(self, timeline: Timeline, *, clock: Callable[[], float] = time.time) -> None:
        self._timeline = timeline
        self._clock = clock
        timeline.ensure_schema("ssh", _SCHEMA)

    def add(
        self,
        kind: Kind,
        public_key: str,
        *,
        key_id: str,
        source: str,
        address: str,
        expires: float,
        who: str,
        label: str = "",
        serial: int = 0,
    ) -> Credential:
        """Store a credential that was issued. Removes expired credentials."""
        now = self._clock()
        made = Credential(
            secrets.token_hex(6), kind, serial, fingerprint(public_key), key_id, label, source, address, now, expires
        )
        with self._timeline.transaction() as tx:
            tx.execute("DELETE FROM ssh_credential WHERE expires <= ?", (now,))
            (active,) = tx.execute("SELECT count(*) FROM ssh_credential WHERE revoked IS NULL").fetchone()
            if active >= MAX_ACTIVE:
                raise FreeholdError(
                    "ssh.too-many",
                    f"There are {MAX_ACTIVE} active SSH keys already, which is the maximum",
                    hint="Revoke some: freehold ssh --list, freehold ssh --revoke all",
                )
            tx.execute(
                "INSERT INTO ssh_credential VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL, NULL)",
                (made.id, kind, serial, made.fingerprint, key_id, label, source, address, now, expires),
            )
            tx.append(
                "ssh.certificate_issued" if kind == "certificate" else "ssh.key_issued",
                {"credential": made.id, "key_id": key_id, "fingerprint": made.fingerprint, "expires": expires},
                who=who,
            )
        return made

    def find_certificate(self, serial: int, key_fingerprint: str) -> Credential | None:
        return self._find_one("serial = ? AND fingerprint = ? AND kind = 'certificate'", serial, key_fingerprint)

    def find_key(self, key_fingerprint: str) -> Credential | None:
        return self._find_one(
            "fingerprint = ? AND kind = 'key' AND revoked IS NULL AND expires > ?", key_fingerprint, self._clock()
        )

    def get(self, credential: str) -> Credential | None:
        return self._find_one("id = ?", credential)

    def list(self) -> list[Credential]:
        """All credentials that have not expired, the newest first. Revoked ones are included."""
        rows = self._timeline.query(f"{_SELECT} WHERE expires > ? ORDER BY created DESC, id", (self._clock(),))
        return [Credential(*row) for row in rows]

    def revoke(self, credential: str, *, who: str) -> bool:
        """End a credential; its connections end within a second. Idempotent. Returns whether it was active."""
        with self._timeline.transaction() as tx:
            ended = tx.execute(
                "UPDATE ssh_credential SET revoked = ? WHERE id = ? AND revoked IS NULL", (self._clock(), credential)
            ).rowcount
            if ended:
                tx.append("ssh.credential_revoked", {"credential": credential}, who=who)
        return bool(ended)

    def record_use(self, credential: str, address: str) -> None:
        with self._timeline.transaction() as tx:
            tx.execute(
                "UPDATE ssh_credential SET used = ?, used_from = ? WHERE id = ?", (self._clock(), address, credential)
            )

    def owner_addresses(self) -> set[str]:
        """The addresses from which active credentials were requested or last used. A flood must not lock these out."""
        found = {one.address for one in self.list() if one.revoked is None}
        found |= {one.used_from for one in self.list() if one.revoked is None and one.used_from}
        return found - {""}

    def _find_one(self, where: str, *values: Any) -> Credential | None:
        rows = self._timeline.query(f"{_SELECT} WHERE {where} LIMIT 1", values)
        return Credential(*rows[0]) if rows else None
