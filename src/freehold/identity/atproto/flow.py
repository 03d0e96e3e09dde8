"""The OAuth flow of one sign-in. Numbers in the log refer to the checklist in docs/guides/sign-in.md."""

import asyncio
import base64
import hashlib
import json
import logging
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.identity.atproto.attempts import OtherBrowserError, SignInAttempts
from freehold.identity.atproto.discovery import AuthorizationServer, discover_server, find_issuer
from freehold.identity.atproto.dpop import DpopKey
from freehold.identity.atproto.fetcher import Fetcher, NetworkOverrides
from freehold.identity.atproto.oauth_client import OAuthClient
from freehold.identity.atproto.oauth_requests import OAuthRequests, TokenResponse
from freehold.identity.atproto.owner_repository import OwnerRepository
from freehold.identity.atproto.problems import ProblemCode, SignInProblem, escape_for_log
from freehold.identity.atproto.resolver import PLC_URL, Resolver
from freehold.identity.atproto.syntax import is_did

SIGN_IN_COOKIE = "__Host-freehold-sign-in"
MAX_PARAMETER_CHARS = 2000

OnEvent = Callable[[str, Mapping[str, str]], object]
UseAccount = Callable[[OwnerRepository], Awaitable[None]]
"""What is done with the owner's repository before the tokens are revoked."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StartedFlow:
    """Send the browser to `redirect`, and set the cookie SIGN_IN_COOKIE to `binding` for ten minutes."""

    redirect: str
    binding: str


@dataclass(frozen=True)
class _Attempt:
    server: AuthorizationServer
    did: str
    verifier: str
    key: str
    nonce: str | None

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, text: bytes) -> "_Attempt":
        found = json.loads(text)
        return cls(**{**found, "server": AuthorizationServer(**found["server"])})


class OAuthFlow:
    """Proves that the person at the browser is the owner. The gateway has one object for all sign-ins.

    Each sign-in starts from the configured DID, so a stranger cannot make this Freehold contact other servers. The
    tokens prove the identity and are revoked at once. `on_event` is called in a thread with the kind and data of a
    timeline event.
    """

    def __init__(
        self,
        *,
        owner: str,
        client: OAuthClient,
        database: Path,
        on_event: OnEvent,
        plc_url: str = PLC_URL,
        network: NetworkOverrides | None = None,
        clock: Callable[[], float] = time.time,
        timeout: float = 30.0,
    ) -> None:
        if not is_did(owner):
            raise FreeholdError(
                "identity.owner",
                f"{owner[:100]!r} is not a DID",
                hint="Set `did` under [owner] in freehold.toml to a did:plc or did:web; freehold init finds it from a handle",
            )
        self.client = client
        self._owner = owner
        self._on_event = on_event
        self._clock = clock
        self._timeout = timeout
        self._fetcher = Fetcher(network)
        self._resolver = Resolver(self._fetcher, plc_url=plc_url)
        self._pending = SignInAttempts(database, clock=clock)

    def close(self) -> None:
        self._pending.close()

    async def start(self) -> StartedFlow:
        """Start a sign-in for one browser. Raises SignInProblem."""
        try:
            async with asyncio.timeout(self._timeout):
                return await self._start()
        except TimeoutError:
            problem = SignInProblem("server-unreachable", f"the sign-in did not start within {self._timeout:g} s")
        except SignInProblem as found:
            problem = found
        _log.warning("the sign-in could not start: %s [%s]", problem.reason, problem.code)
        raise problem

    async def finish(self, query: Iterable[tuple[str, str]], binding: str | None, use: UseAccount | None = None) -> str:
        """Check the query of the callback. Returns the DID of the owner, or raises SignInProblem.

        The attempt ends in each case: its state and its code do not work a second time. `use` is called when
        everything was checked; the tokens are revoked after it.
        """
        try:
            async with asyncio.timeout(self._timeout):
                return await self._finish(list(query), binding, use)
        except TimeoutError:
            problem = SignInProblem("server-unreachable", f"the servers did not answer within {self._timeout:g} s")
        except SignInProblem as found:
            problem = found
        _log.warning("the sign-in was refused: %s [%s]", problem.reason, problem.code)
        raise problem

    async def _start(self) -> StartedFlow:
        account = await self._resolver.resolve_did(self._owner)
        issuer = await find_issuer(self._fetcher, account.pds)
        server = await discover_server(self._fetcher, issuer, account.pds)
        state, binding, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        key = DpopKey.generate()
        requests = OAuthRequests(self._fetcher, server, self.client, key, clock=self._clock)
        redirect = await requests.push_authorization(did=self._owner, state=state, challenge=challenge)
        attempt = _Attempt(server=server, did=self._owner, verifier=verifier, key=key.dump(), nonce=requests.nonce)
        await asyncio.to_thread(self._pending.store, state, binding, attempt.encode())
        return StartedFlow(redirect, binding)

    async def _finish(self, query: list[tuple[str, str]], binding: str | None, use: UseAccount | None) -> str:
        answer = _single_values(query)
        try:
            stored = await asyncio.to_thread(self._pending.take, answer.get("state", ""), binding)
        except OtherBrowserError:
            raise SignInProblem(
                "other-browser", "checklist 24: the pre-login cookie belongs to another sign-in"
            ) from None
        if stored is None:
            raise SignInProblem("expired", "checklist 13, 18: the state is unknown, used or expired")
        try:
            return await self._check_callback(_Attempt.decode(stored), answer, use)
        except SignInProblem as problem:
            data = {"code": problem.code, "reason": problem.reason}
            await asyncio.to_thread(self._on_event, "identity.sign_in_refused", data)
            raise

    async def _check_callback(self, attempt: _Attempt, answer: Mapping[str, str], use: UseAccount | None) -> str:
        issuer = attempt.server.issuer
        place = issuer.split("://")[-1]
        if answer.get("iss") != issuer:
            reason = f"checklist 18: iss is {escape_for_log(answer.get('iss'))}, not {issuer}"
            raise SignInProblem("wrong-issuer", reason)
        if "error" in answer:
            code: ProblemCode = "denied" if answer["error"] == "access_denied" else "server-error"
            raise SignInProblem(code, f"the server answered {escape_for_log(answer['error'])}", place=place)
        if not answer.get("code"):
            raise SignInProblem("callback-malformed", "the callback has neither a code nor an error")
        key = DpopKey.load(attempt.key)
        requests = OAuthRequests(
            self._fetcher, attempt.server, self.client, key, clock=self._clock, nonce=attempt.nonce
        )
        tokens = await requests.redeem_code(code=answer["code"], verifier=attempt.verifier)
        try:
            self._check_tokens(tokens, attempt, place)
            # No server gets a token before the DID was asked again which one it belongs to.
            pds = await self._check_issuer(tokens.sub, issuer)
            if use is not None:
                await use(OwnerRepository(self._fetcher, pds, tokens.sub, tokens.access_token, key, clock=self._clock))
        finally:
            for failure in await requests.revoke_tokens(tokens):
                _log.warning("a token could not be revoked: %s", failure)
        return tokens.sub

    def _check_tokens(self, tokens: TokenResponse, attempt: _Attempt, place: str) -> None:
        if tokens.token_type != "DPoP":  # noqa: S105 - a kind of token
            reason = f"checklist 21: token_type is {escape_for_log(tokens.token_type)}"
            raise SignInProblem("token-broken", reason, place=place)
        if not set(self.client.scope.split(" ")) <= set(tokens.scope.split(" ")):
            raise SignInProblem(
                "token-broken", f"checklist 21: the scope is {escape_for_log(tokens.scope)}", place=place
            )
        if not is_did(tokens.sub):
            raise SignInProblem("token-broken", f"checklist 19: sub is {escape_for_log(tokens.sub)}", place=place)
        if tokens.sub != attempt.did or tokens.sub != self._owner:
            reason = f"checklist 19: {tokens.sub} signed in and is not the owner"
            raise SignInProblem("not-owner", reason)

    async def _check_issuer(self, did: str, issuer: str) -> str:
        """Resolve the DID again: it must still lead to the server that issued the tokens. Returns its PDS."""
        account = await self._resolver.resolve_did(did)
        found = await find_issuer(self._fetcher, account.pds)
        if found != issuer:
            reason = f"checklist 20: {did} now belongs to {found}, but {issuer} answered"
            raise SignInProblem("moved", reason)
        return account.pds


def _single_values(query: list[tuple[str, str]]) -> dict[str, str]:
    names = [name for name, _ in query]
    if len(set(names)) != len(names) or any(len(value) > MAX_PARAMETER_CHARS for _, value in query) or len(query) > 20:
        raise SignInProblem("callback-malformed", "a parameter is repeated or too long")
    values = dict(query)
    if not values.get("state"):
        raise SignInProblem("callback-malformed", "checklist 18: the state is missing")
    return values
