"""Sign-in from beginning to end. Numbers in the log are those of the checklist in docs/guides/sign-in.md."""

import asyncio
import base64
import hashlib
import json
import logging
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.identity.atproto.client import SCOPE, Client
from freehold.identity.atproto.discovery import AuthorizationServer, discover_server, find_issuer
from freehold.identity.atproto.dpop import DpopKey
from freehold.identity.atproto.exchange import Exchange, TokenAnswer
from freehold.identity.atproto.fetch import Fetcher, Network
from freehold.identity.atproto.pending import OtherBrowserError, PendingSignIns
from freehold.identity.atproto.problems import Code, SignInProblem, shown
from freehold.identity.atproto.resolve import PLC_URL, Resolver
from freehold.identity.atproto.syntax import is_did

SIGN_IN_COOKIE = "__Host-freehold-sign-in"
LONGEST_PARAMETER = 2000

OnEvent = Callable[[str, Mapping[str, str]], object]

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Started:
    """Send the browser to `redirect`, and give it `binding` as the cookie SIGN_IN_COOKIE for ten minutes."""

    redirect: str
    binding: str


@dataclass(frozen=True)
class _Record:
    server: AuthorizationServer
    did: str
    verifier: str
    key: str
    nonce: str | None

    def encode(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def decode(cls, text: bytes) -> "_Record":
        found = json.loads(text)
        return cls(**{**found, "server": AuthorizationServer(**found["server"])})


class SignIn:
    """Proves that whoever sits at the browser is the owner. One for the life of the gateway.

    Every sign-in begins with the configured DID, so no stranger can make this Freehold look anything up; the tokens
    prove who it is and are revoked at once. `on_event` is called in a thread with a kind and data for the timeline.
    """

    def __init__(
        self,
        *,
        owner: str,
        client: Client,
        database: Path,
        on_event: OnEvent,
        plc_url: str = PLC_URL,
        network: Network | None = None,
        clock: Callable[[], float] = time.time,
        deadline: float = 30.0,
    ) -> None:
        if not is_did(owner):
            raise FreeholdError(
                "identity.owner",
                f"{owner[:100]!r} is not a DID",
                hint="`did` under [owner] in freehold.toml must be a did:plc or did:web; freehold init finds it from a handle",
            )
        self.client = client
        self._owner = owner
        self._on_event = on_event
        self._clock = clock
        self._deadline = deadline
        self._fetcher = Fetcher(network)
        self._resolver = Resolver(self._fetcher, plc_url=plc_url)
        self._pending = PendingSignIns(database, clock=clock)

    def close(self) -> None:
        self._pending.close()

    async def start(self) -> Started:
        """Begin a sign-in in the browser that asks; raises SignInProblem."""
        try:
            async with asyncio.timeout(self._deadline):
                return await self._start()
        except TimeoutError:
            problem = SignInProblem("server-unreachable", f"no sign-in could begin within {self._deadline:g} s")
        except SignInProblem as found:
            problem = found
        _log.warning("sign-in could not begin: %s [%s]", problem.reason, problem.code)
        raise problem

    async def finish(self, query: Iterable[tuple[str, str]], binding: str | None) -> str:
        """Judge what came to the callback; gives the owner's DID, or raises SignInProblem.

        Whatever comes of it, the sign-in is over: neither its state nor its code works a second time.
        """
        try:
            async with asyncio.timeout(self._deadline):
                return await self._finish(list(query), binding)
        except TimeoutError:
            problem = SignInProblem("server-unreachable", f"no answer within {self._deadline:g} s")
        except SignInProblem as found:
            problem = found
        _log.warning("sign-in refused: %s [%s]", problem.reason, problem.code)
        raise problem

    async def _start(self) -> Started:
        account = await self._resolver.resolve_did(self._owner)
        issuer = await find_issuer(self._fetcher, account.pds)
        server = await discover_server(self._fetcher, issuer, account.pds)
        state, binding, verifier = (secrets.token_urlsafe(32) for _ in range(3))
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        key = DpopKey.generate()
        exchange = Exchange(self._fetcher, server, self.client, key, clock=self._clock)
        redirect = await exchange.push(did=self._owner, state=state, challenge=challenge)
        record = _Record(server=server, did=self._owner, verifier=verifier, key=key.dump(), nonce=exchange.nonce)
        await asyncio.to_thread(self._pending.put, state, binding, record.encode())
        return Started(redirect, binding)

    async def _finish(self, query: list[tuple[str, str]], binding: str | None) -> str:
        answer = _single_values(query)
        try:
            taken = await asyncio.to_thread(self._pending.take, answer.get("state", ""), binding)
        except OtherBrowserError:
            raise SignInProblem(
                "other-browser", "checklist 24: the pre-login cookie is not that of this sign-in"
            ) from None
        if taken is None:
            raise SignInProblem("expired", "checklist 13, 18: the state is unknown, used or too old")
        try:
            return await self._judge(_Record.decode(taken), answer)
        except SignInProblem as problem:
            data = {"code": problem.code, "reason": problem.reason}
            await asyncio.to_thread(self._on_event, "identity.sign_in_refused", data)
            raise

    async def _judge(self, record: _Record, answer: Mapping[str, str]) -> str:
        issuer = record.server.issuer
        place = issuer.split("://")[-1]
        if answer.get("iss") != issuer:
            reason = f"checklist 18: iss is {shown(answer.get('iss'))}, not {issuer}"
            raise SignInProblem("wrong-issuer", reason)
        if "error" in answer:
            code: Code = "denied" if answer["error"] == "access_denied" else "server-error"
            raise SignInProblem(code, f"the server answered {shown(answer['error'])}", place=place)
        if not answer.get("code"):
            raise SignInProblem("callback-malformed", "neither a code nor an error came back")
        exchange = Exchange(
            self._fetcher, record.server, self.client, DpopKey.load(record.key), clock=self._clock, nonce=record.nonce
        )
        tokens = await exchange.redeem(code=answer["code"], verifier=record.verifier)
        try:
            self._check_tokens(tokens, record, place)
        finally:
            for failure in await exchange.revoke(tokens):
                _log.warning("a token could not be revoked: %s", failure)
        await self._check_home(tokens.sub, issuer)
        return tokens.sub

    def _check_tokens(self, tokens: TokenAnswer, record: _Record, place: str) -> None:
        if tokens.token_type != "DPoP":  # noqa: S105 - a kind of token
            reason = f"checklist 21: token_type is {shown(tokens.token_type)}"
            raise SignInProblem("token-broken", reason, place=place)
        if SCOPE not in tokens.scope.split(" "):
            raise SignInProblem("token-broken", f"checklist 21: the scope is {shown(tokens.scope)}", place=place)
        if not is_did(tokens.sub):
            raise SignInProblem("token-broken", f"checklist 19: sub is {shown(tokens.sub)}", place=place)
        if tokens.sub != record.did or tokens.sub != self._owner:
            reason = f"checklist 19: {tokens.sub} signed in and is not the owner"
            raise SignInProblem("not-owner", reason)

    async def _check_home(self, did: str, issuer: str) -> None:
        """The DID must lead back, looked up afresh, to the server that vouched for it."""
        account = await self._resolver.resolve_did(did)
        found = await find_issuer(self._fetcher, account.pds)
        if found != issuer:
            reason = f"checklist 20: {did} now belongs to {found}, but {issuer} answered"
            raise SignInProblem("moved", reason)


def _single_values(query: list[tuple[str, str]]) -> dict[str, str]:
    names = [name for name, _ in query]
    if len(set(names)) != len(names) or any(len(value) > LONGEST_PARAMETER for _, value in query) or len(query) > 20:
        raise SignInProblem("callback-malformed", "a parameter came twice or is too long")
    values = dict(query)
    if not values.get("state"):
        raise SignInProblem("callback-malformed", "checklist 18: there is no state")
    return values
