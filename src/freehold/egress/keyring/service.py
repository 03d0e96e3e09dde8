"""Everything that egress knows of credentials: whose placeholder it is, whether a request may carry the secret, and who is asked."""

import asyncio
import ssl
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from freehold.egress.http1 import HttpRequest
from freehold.egress.keyring.authority import CredentialAuthority
from freehold.egress.keyring.credential import HostCredential
from freehold.egress.keyring.placeholders import (
    BUNDLE,
    FOLDER,
    NPMRC,
    PREFIX,
    CredentialGrant,
    CredentialPlaceholders,
    make_environment,
    make_npmrc,
)
from freehold.egress.keyring.response_mask import ResponseMask, add_credential
from freehold.egress.names import Host
from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.tls_trust import trust_system

MAX_RECENT = 200
MAX_PATH = 200
ANSWER_TIMEOUT = 600.0
"""Seconds that a push or another change waits for the owner."""

MAX_WAITING = 4
"""Changes of one session that may wait for the owner at once."""

AskOwner = Callable[[str, HostCredential, str, str], Awaitable[bool]]
"""Asks whether a session may send this method, and this path with its query, with a credential."""


@dataclass(frozen=True)
class CredentialUse:
    """One request that carried a secret. `path` has no query."""

    at: str
    credential: str
    session: str
    method: str
    path: str


@dataclass(frozen=True)
class KeyedRequest:
    """A request as it is sent with its secret, and what cleans the response."""

    credential: HostCredential
    session: str
    request: HttpRequest
    mask: ResponseMask

    @property
    def words(self) -> str:
        path = self.request.target.partition("?")[0]
        return f"the credential {self.credential.name} was added to {self.request.method} {path[:MAX_PATH]}"


class Keyring:
    """The credentials in force. `public` is a folder that is read-only inside; nothing in it is a secret."""

    def __init__(self, vault: Vault, private: Path, public: Path, trust: ssl.SSLContext | None = None) -> None:
        self._vault = vault
        self._trust = trust
        self._private = private
        self._public = public
        self._credentials: dict[str, HostCredential] = {}
        self._authority: CredentialAuthority | None = None
        self._placeholders = CredentialPlaceholders()
        self.ask: AskOwner | None = None
        self._waiting: Counter[str] = Counter()
        self.recent: deque[CredentialUse] = deque(maxlen=MAX_RECENT)
        self.counts: Counter[str] = Counter()
        """Requests that carried a secret since this process started, by credential."""

    @property
    def credentials(self) -> tuple[HostCredential, ...]:
        return tuple(self._credentials.values())

    async def set_credentials(self, credentials: Sequence[HostCredential]) -> None:
        """Applies the manifest. A placeholder of a credential that is gone stays a placeholder."""
        if tuple(credentials) != self.credentials:
            self._authority = await asyncio.to_thread(self._prepare, list(credentials))
            self._credentials = {one.name: one for one in credentials}

    def _prepare(self, credentials: list[HostCredential]) -> CredentialAuthority | None:
        hosts = [one.host for one in credentials if one.intercepts]
        if not hosts:
            return None
        authority = CredentialAuthority(self._private, hosts)
        folder = self._public / FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)
        for name, text in ((BUNDLE, authority.bundle()), (NPMRC, make_npmrc(credentials))):
            draft = folder / f".{name}.new"
            draft.write_text(text)
            draft.chmod(0o644)
            draft.replace(folder / name)
        return authority

    def grant(self, session: str) -> tuple[dict[str, str], tuple[str, ...]]:
        """The variables for the agent of a session, and its placeholders."""
        granted = [(one, self._placeholders.issue(one.name, session).placeholder) for one in self.credentials]
        return make_environment(granted), tuple(placeholder for _, placeholder in granted)

    def revoke(self, session: str) -> None:
        """Idempotent."""
        self._placeholders.revoke(session)

    def find_relayed(self, target: str) -> tuple[HostCredential, CredentialGrant, str] | None:
        """The credential, the grant and the path at the server of a request to the relay.

        None for what is no such request. Raises `egress.bad-credentials` for a placeholder that does not count.
        """
        if not target.startswith(f"/{PREFIX}"):
            return None
        placeholder, slash, path = target[1:].partition("/")
        grant = self._placeholders.find(placeholder)
        credential = self._credentials.get(grant.credential) if grant is not None else None
        if grant is None or credential is None:
            raise FreeholdError(
                "egress.bad-credentials",
                "This placeholder does not count, or no longer",
                hint="It counts for the session that it was given to, while its agent runs",
            )
        return credential, grant, f"{slash or '/'}{path}"

    async def find_context(self, host: Host, port: int, session: str | None) -> ssl.SSLContext | None:
        """For ending the TLS of a session to a host of a credential that needs it; None for all other connections."""
        authority = self._authority
        wanted = any(one.intercepts and (one.host, one.port) == (host, port) for one in self.credentials)
        if not wanted or session is None or authority is None:
            return None
        return await asyncio.to_thread(authority.find_context, host)

    def find_held(self, request: HttpRequest, host: Host, port: int, session: str) -> HostCredential | None:
        """The credential whose placeholder a request to its host has in its header."""
        for one in self.credentials:
            grant = self._placeholders.find_for(one.name, session)
            if grant is not None and (one.host, one.port) == (host, port) and one.holds(request, grant.placeholder):
                return one
        return None

    async def find_trust(self) -> ssl.SSLContext:
        """What the certificate of a server must be signed by: the roots of this machine."""
        if self._trust is None:
            self._trust = await asyncio.to_thread(trust_system)
        return self._trust

    async def unlock(self, credential: HostCredential, request: HttpRequest, session: str) -> KeyedRequest:
        """The request with its secret. The caller has checked that the credential covers it.

        Raises `egress.no-secret`, or `egress.not-permitted` for a change that the owner did not allow.
        """
        path = request.target.partition("?")[0]
        if credential.is_write(request.method, request.target):
            await self._permit_write(credential, request, session)
        try:
            secret = await asyncio.to_thread(self._vault.get, credential.secret)
        except FreeholdError as error:
            raise FreeholdError(
                "egress.no-secret",
                f"The credential {credential.name} has no secret yet",
                hint=f"The owner can store it with: freehold secret set {credential.secret}",
                kind="unavailable",
            ) from error
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self.recent.append(CredentialUse(now, credential.name, session, request.method, path[:MAX_PATH]))
        self.counts[credential.name] += 1
        sent = add_credential(request, credential.header, credential.encode(secret))
        return KeyedRequest(credential, session, sent, ResponseMask(credential.spellings(secret)))

    async def _permit_write(self, credential: HostCredential, request: HttpRequest, session: str) -> None:
        what = f"{request.method} {credential.authority}{request.target.partition('?')[0]}"
        if credential.writes == "allow":
            return
        if credential.writes == "deny" or self.ask is None:
            raise not_permitted(f"The credential {credential.name} is for reading only, so {what} was not sent")
        if self._waiting[session] >= MAX_WAITING:
            raise not_permitted(f"{MAX_WAITING} changes of this session wait for the owner already")
        self._waiting[session] += 1
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                is_allowed = await self.ask(session, credential, request.method, request.target)
        except TimeoutError as error:
            raise not_permitted(f"The owner did not answer, so {what} was not sent") from error
        except FreeholdError as error:
            raise not_permitted(f"The owner cannot be asked now, so {what} was not sent: {error.message}") from error
        finally:
            self._waiting[session] -= 1
        if not is_allowed:
            raise not_permitted(f"The owner did not allow {what}")


def not_permitted(why: str) -> FreeholdError:
    return FreeholdError(
        "egress.not-permitted", why, hint="The owner decides by writes in [credentials]", kind="permission"
    )
