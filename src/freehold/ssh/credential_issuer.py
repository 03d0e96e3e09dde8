"""Giving out keys: the one place where the authority signs, for the gateway and for the command line alike."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.manifest import Manifest
from freehold.manifest.addresses import is_any
from freehold.ssh.connecting import Door
from freehold.ssh.credentials import LONGEST_LIFE, Credential, Credentials
from freehold.ssh.keys import ensure_keys, host_key_path, read_public

if TYPE_CHECKING:
    from freehold.ssh.authority import Pair, PairKind


@dataclass(frozen=True)
class Maker:
    """Who asks. What they get lives no longer than `source`: `session:ID`, `token:ID`, or `local`."""

    source: str
    who: str
    address: str


@dataclass(frozen=True)
class Issued:
    credential: Credential
    certificate: str


@dataclass(frozen=True)
class IssuedPair:
    credential: Credential
    pair: "Pair"


class Issuing:
    """All calls block on the disk."""

    def __init__(self, home: Home, manifest: Manifest, credentials: Credentials) -> None:
        self._home = home
        self._manifest = manifest
        self.credentials = credentials

    def issue_certificate(
        self, public_key: str, maker: Maker, *, seconds: int | None = None, label: str = ""
    ) -> Issued:
        """Certify a key that the client made."""
        from freehold.ssh.authority import Authority

        self._require_enabled()
        ensure_keys(self._home)
        made = Authority(self._home).sign(
            public_key,
            key_id=self._key_id(maker),
            lifetime=self._lifetime(seconds),
            forwarding=self._manifest.ssh.forwarding,
        )
        credential = self.credentials.add(
            "certificate",
            made.public_key,
            key_id=made.key_id,
            source=maker.source,
            address=maker.address,
            expires=float(made.valid_before),
            who=maker.who,
            label=_shown(label),
            serial=made.serial,
        )
        return Issued(credential, made.text)

    def issue_pair(
        self, maker: Maker, kind: "PairKind" = "ed25519", *, seconds: int | None = None, label: str = ""
    ) -> IssuedPair:
        """For a client that knows no certificates: a pair made here, of which only the public half is kept."""
        from freehold.ssh.authority import make_pair, read_public_key, show_public_key

        self._require_enabled()
        ensure_keys(self._home)
        pair = make_pair(kind)
        credential = self.credentials.add(
            "key",
            show_public_key(read_public_key(pair.public_key)),
            key_id=self._key_id(maker),
            source=maker.source,
            address=maker.address,
            expires=time.time() + self._lifetime(seconds),
            who=maker.who,
            label=_shown(label),
        )
        return IssuedPair(credential, pair)

    def door(self) -> Door:
        """Where clients find the server, as far as the manifest tells."""
        ensure_keys(self._home)
        return Door(self._reached_at(), self._manifest.ssh.port, read_public(host_key_path(self._home)))

    def _reached_at(self) -> str:
        host, public = self._manifest.ssh.host, self._manifest.gateway.public_url
        if not is_any(host):
            return host
        return (urlsplit(public).hostname if public else None) or "localhost"

    def _key_id(self, maker: Maker) -> str:
        return f"{self._manifest.owner.did or 'owner'} {maker.source}"

    def _lifetime(self, seconds: int | None) -> int:
        most = min(self._manifest.ssh.lifetime, LONGEST_LIFE)
        return most if seconds is None else max(1, min(seconds, most))

    def _require_enabled(self) -> None:
        if not self._manifest.ssh.enabled:
            raise FreeholdError(
                "ssh.not-running",
                "The SSH server is switched off",
                hint="Set ssh.enabled = true in freehold.toml and restart: freehold down, freehold up",
            )


def _shown(label: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in label)[:80]
