"""Checks a credential: issued here, not expired, not revoked, and its sign-in or API token still active."""

import base64
import time
from collections.abc import Callable

from freehold.identity.sign_ins import SignIns
from freehold.identity.tokens import ApiTokens
from freehold.ssh.credentials import Credential, CredentialStore


class CredentialCheck:
    """All calls but `revocation_count` read local files: call them in a thread."""

    def __init__(
        self,
        credentials: CredentialStore,
        sign_ins: SignIns,
        tokens: ApiTokens,
        authority: str,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._credentials = credentials
        self._sign_ins = sign_ins
        self._tokens = tokens
        self._authority = base64.b64decode(authority.split()[1])
        self._clock = clock

    def is_authority(self, public_data: bytes) -> bool:
        return public_data == self._authority

    def find_by_certificate(self, serial: int, fingerprint: str) -> Credential | None:
        """The credential of a certificate. Its signature, principal and dates must be checked already."""
        return self._if_valid(self._credentials.find_certificate(serial, fingerprint))

    def find_by_key(self, fingerprint: str) -> Credential | None:
        return self._if_valid(self._credentials.find_key(fingerprint))

    def is_valid(self, credential: Credential) -> bool:
        """Whether a connection that uses this credential may stay open."""
        return self._if_valid(self._credentials.get(credential.id)) is not None

    def record_use(self, credential: Credential, address: str) -> None:
        self._credentials.record_use(credential.id, address)

    def revocation_count(self) -> int:
        """Changes when a sign-in or API token was revoked. Takes microseconds; may be called on the event loop."""
        return self._sign_ins.revocation_count()

    def owner_addresses(self) -> set[str]:
        return self._credentials.owner_addresses()

    def _if_valid(self, credential: Credential | None) -> Credential | None:
        if credential is None or not credential.is_valid_at(self._clock()):
            return None
        kind, _, name = credential.source.partition(":")
        match kind:
            case "session":
                alive = self._sign_ins.is_active(name)
            case "token":
                alive = self._tokens.is_active(name)
            case _:
                alive = kind == "local"
        return credential if alive else None
