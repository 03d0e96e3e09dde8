"""Issues SSH credentials, for the gateway and for the command line."""

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.manifest import Manifest
from freehold.manifest.addresses import is_any
from freehold.ssh.client_config import SshEndpoint
from freehold.ssh.credentials import MAX_LIFETIME, Credential, CredentialStore
from freehold.ssh.keys import ensure_keys, host_key_path, read_public
from freehold.ssh.section import SshSection

if TYPE_CHECKING:
    from freehold.ssh.authority import KeyPair, KeyPairKind


@dataclass(frozen=True)
class CredentialRequester:
    """Who requests a credential. It ends with `source`: `session:ID` (a sign-in), `token:ID`, or `local`."""

    source: str
    who: str
    address: str


@dataclass(frozen=True)
class IssuedCertificate:
    credential: Credential
    certificate: str


@dataclass(frozen=True)
class IssuedKeyPair:
    credential: Credential
    key_pair: "KeyPair"


class CredentialIssuer:
    """All calls block on the disk."""

    def __init__(self, home: Home, manifest: Manifest, credentials: CredentialStore) -> None:
        self._home = home
        self._manifest = manifest
        self.credentials = credentials

    def issue_certificate(
        self, public_key: str, requester: CredentialRequester, *, seconds: int | None = None, label: str = ""
    ) -> IssuedCertificate:
        """Sign a key that the client created."""
        from freehold.ssh.authority import CertificateAuthority

        self._require_enabled()
        ensure_keys(self._home)
        made = CertificateAuthority(self._home).sign(
            public_key,
            key_id=self._key_id(requester),
            lifetime=self._lifetime(seconds),
            forwarding=self._manifest.section(SshSection).forwarding,
        )
        credential = self.credentials.add(
            "certificate",
            made.public_key,
            key_id=made.key_id,
            source=requester.source,
            address=requester.address,
            expires=float(made.valid_before),
            who=requester.who,
            label=_printable(label),
            serial=made.serial,
        )
        return IssuedCertificate(credential, made.text)

    def issue_key_pair(
        self,
        requester: CredentialRequester,
        kind: "KeyPairKind" = "ed25519",
        *,
        seconds: int | None = None,
        label: str = "",
    ) -> IssuedKeyPair:
        """Create a key pair for a client without certificate support. Only the public key is stored."""
        from freehold.ssh.authority import format_public_key, make_key_pair, read_public_key

        self._require_enabled()
        ensure_keys(self._home)
        pair = make_key_pair(kind)
        credential = self.credentials.add(
            "key",
            format_public_key(read_public_key(pair.public_key)),
            key_id=self._key_id(requester),
            source=requester.source,
            address=requester.address,
            expires=time.time() + self._lifetime(seconds),
            who=requester.who,
            label=_printable(label),
        )
        return IssuedKeyPair(credential, pair)

    def endpoint(self) -> SshEndpoint:
        """The address of the server for clients, as far as the manifest says, and its host key."""
        ensure_keys(self._home)
        return SshEndpoint(
            self._public_host(), self._manifest.section(SshSection).port, read_public(host_key_path(self._home))
        )

    def _public_host(self) -> str:
        host, public = self._manifest.section(SshSection).host, self._manifest.gateway.public_url
        if not is_any(host):
            return host
        return (urlsplit(public).hostname if public else None) or "localhost"

    def _key_id(self, requester: CredentialRequester) -> str:
        return f"{self._manifest.owner.did or 'owner'} {requester.source}"

    def _lifetime(self, seconds: int | None) -> int:
        limit = min(self._manifest.section(SshSection).lifetime, MAX_LIFETIME)
        return limit if seconds is None else max(1, min(seconds, limit))

    def _require_enabled(self) -> None:
        if not self._manifest.section(SshSection).enabled:
            raise FreeholdError(
                "ssh.not-running",
                "SSH access is disabled (ssh.enabled = false)",
                hint="Set ssh.enabled = true in freehold.toml, then: freehold down, freehold up",
            )


def _printable(label: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in label)[:80]
