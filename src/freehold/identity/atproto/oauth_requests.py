"""The conversation with one authorization server: every request proves the key, the client and freshness."""

import asyncio
import re
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from freehold.identity.atproto.client import SCOPE, Client
from freehold.identity.atproto.discovery import AuthorizationServer
from freehold.identity.atproto.dpop import DpopKey
from freehold.identity.atproto.fetch import Answer, Fetcher, FetchError
from freehold.identity.atproto.problems import Code, SignInProblem, fetch_problem, first_fault, shown

SKEW = 30.0
REVOCATION_DEADLINE = 5.0
_ERROR = re.compile(r"[a-z_]{1,60}")


class _Pushed(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")
    request_uri: str = Field(min_length=1, max_length=1000, pattern=r"^[!-~]+$")
    expires_in: int = Field(gt=0)


class TokenAnswer(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")
    access_token: str = Field(min_length=1, repr=False)
    refresh_token: str | None = Field(default=None, repr=False)
    token_type: str
    scope: str
    sub: str


class Exchange:
    """`nonce` is the last that this server gave; it lives on from the request to the callback."""

    def __init__(
        self,
        fetcher: Fetcher,
        server: AuthorizationServer,
        client: Client,
        key: DpopKey,
        *,
        clock: Callable[[], float],
        nonce: str | None = None,
    ) -> None:
        self.nonce = nonce
        self._fetcher = fetcher
        self._server = server
        self._client = client
        self._key = key
        self._clock = clock
        self._place = server.issuer.split("://")[-1]

    async def push(self, *, did: str, state: str, challenge: str) -> str:
        """Push the authorization request; gives the address to send the browser to."""
        form = {
            "response_type": "code",
            "redirect_uri": self._client.redirect_uri,
            "scope": SCOPE,
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "login_hint": did,
        }
        answer = await self._post(self._server.request_endpoint, form)
        if answer.status not in (200, 201):
            raise self._refusal(answer, "request-refused", "the pushed request")
        try:
            pushed = _Pushed.model_validate(self._document(answer))
        except ValidationError as error:
            raise self._broken(f"checklist 11: the pushed request's answer: {first_fault(error)}") from None
        query = urlencode({"client_id": self._client.client_id, "request_uri": pushed.request_uri})
        return f"{self._server.authorization_endpoint}?{query}"

    async def redeem(self, *, code: str, verifier: str) -> TokenAnswer:
        form = {
            "grant_type": "authorization_code",
            "redirect_uri": self._client.redirect_uri,
            "code": code,
            "code_verifier": verifier,
        }
        answer = await self._post(self._server.token_endpoint, form)
        if answer.status != 200:
            raise self._refusal(answer, "code-refused", "the code")
        try:
            return TokenAnswer.model_validate(self._document(answer))
        except ValidationError as error:
            reason = f"checklist 21: the token answer: {first_fault(error)}"
            raise SignInProblem("token-broken", reason, place=self._place) from None

    async def revoke(self, tokens: TokenAnswer) -> list[str]:
        """Ask the server to forget the tokens. Gives what failed: there is nothing else to be done about it."""
        failures: list[str] = []
        if self._server.revocation_endpoint is None:
            return ["the server has no revocation endpoint"]
        for token in (tokens.refresh_token, tokens.access_token):
            if token is None:
                continue
            try:
                async with asyncio.timeout(REVOCATION_DEADLINE):
                    answer = await self._send(self._server.revocation_endpoint, {"token": token})
            except (FetchError, TimeoutError) as error:
                failures.append(str(error) or "revocation took too long")
            else:
                if answer.status not in (200, 204):
                    failures.append(f"revocation answered {answer.status} {_error_of(answer)}")
        return failures

    async def _post(self, url: str, form: Mapping[str, str]) -> Answer:
        try:
            answer = await self._send(url, form)
        except FetchError as error:
            raise fetch_problem(error, "server") from None
        if 300 <= answer.status < 400:
            raise self._broken(f"checklist 31: {url} redirects, which is not followed")
        if answer.status >= 500:
            raise SignInProblem("server-unreachable", f"{url} answered {answer.status}", place=self._place)
        if answer.status < 300 and "dpop-nonce" not in answer.headers:
            raise self._broken(f"checklist 15: {url} answered without DPoP-Nonce")
        return answer

    async def _send(self, url: str, form: Mapping[str, str]) -> Answer:
        """One request, and once more with the nonce when the server asks for it; proof and assertion always fresh."""
        answer = await self._send_once(url, form)
        if _error_of(answer) == "use_dpop_nonce" and "dpop-nonce" in answer.headers:
            answer = await self._send_once(url, form)
        return answer

    async def _send_once(self, url: str, form: Mapping[str, str]) -> Answer:
        proof = self._key.proof("POST", url, nonce=self.nonce, clock=self._clock)
        identified = {**form, **self._client.authentication(self._server.issuer, clock=self._clock)}
        answer = await self._fetcher.post_form(url, identified, {"dpop": proof})
        self.nonce = answer.headers.get("dpop-nonce", self.nonce)
        return answer

    def _document(self, answer: Answer) -> dict[str, object]:
        try:
            return answer.json()
        except FetchError as error:
            raise fetch_problem(error, "server") from None

    def _refusal(self, answer: Answer, code: Code, what: str) -> SignInProblem:
        skew = _skew(answer, self._clock())
        reason = f"{what} was answered {answer.status} {_error_of(answer)}: {_description_of(answer)}"
        if abs(skew) > SKEW:
            return SignInProblem("clock-skew", f"{reason}; the clocks differ by {skew:.0f} s", place=f"{abs(skew):.0f}")
        return SignInProblem(code, reason, place=self._place)

    def _broken(self, reason: str) -> SignInProblem:
        return SignInProblem("server-broken", reason, place=self._place)


def _error_of(answer: Answer) -> str:
    if answer.status < 400:
        return ""
    try:
        found = answer.json().get("error")
    except FetchError:
        return ""
    return found if isinstance(found, str) and _ERROR.fullmatch(found) else ""


def _description_of(answer: Answer) -> str:
    try:
        return shown(answer.json().get("error_description"))
    except FetchError as error:
        return str(error)


def _skew(answer: Answer, now: float) -> float:
    try:
        return parsedate_to_datetime(answer.headers["date"]).timestamp() - now
    except (KeyError, ValueError, TypeError):
        return 0.0
