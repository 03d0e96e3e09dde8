"""Whether a key that somebody shows is still good: issued here, not ended, not revoked, and its maker still signed in."""

import base64
import time
from collections.abc import Callable

from freehold.identity.sessions import Sessions
from freehold.identity.tokens import Tokens
from freehold.ssh.credentials import Credential, Credentials


class Warrants:
    """All calls are quick reads of local files, for a thread; `holds` may be called for every live connection."""

    def __init__(
        self,
        credentials: Credentials,
        sessions: Sessions,
        tokens: Tokens,
        authority: str,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._credentials = credentials
        self._sessions = sessions
        self._tokens = tokens
        self._authority = base64.b64decode(authority.split()[1])
        self._clock = clock

    def is_authority(self, public_data: bytes) -> bool:
        return public_data == self._authority

    def for_certificate(self, serial: int, fingerprint: str) -> Credential | None:
        """The record of a certificate whose signature, principal and dates were checked already."""
        return self._if_good(self._credentials.find_certificate(serial, fingerprint))

    def for_key(self, fingerprint: str) -> Credential | None:
        return self._if_good(self._credentials.find_key(fingerprint))

    def holds(self, credential: Credential) -> bool:
        """Whether a connection that was made with it may stay."""
        return self._if_good(self._credentials.get(credential.id)) is not None

    def note_use(self, credential: Credential, address: str) -> None:
        self._credentials.note_use(credential.id, address)

    def revision(self) -> int:
        """Differs after any session or token was revoked. Microseconds; may be called on the event loop."""
        return self._sessions.revision()

    def owner_addresses(self) -> set[str]:
        return self._credentials.owner_addresses()

    def _if_good(self, credential: Credential | None) -> Credential | None:
        if credential is None or not credential.valid(self._clock()):
            return None
        kind, _, name = credential.source.partition(":")
        match kind:
            case "session":
                alive = self._sessions.alive(name)
            case "token":
                alive = self._tokens.alive(name)
            case _:
                alive = kind == "local"
        return credential if alive else None
