"""Requests to one authorization server. Each proves the DPoP key, authenticates the client and has the last nonce."""

import asyncio
import re
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from urllib.parse import urlencode

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from freehold.identity.atproto.discovery import AuthorizationServer
from freehold.identity.atproto.dpop import DpopKey
from freehold.identity.atproto.fetcher import Fetcher, FetchError, FetchResponse
from freehold.identity.atproto.oauth_client import OAuthClient
from freehold.identity.atproto.problems import (
    ProblemCode,
    SignInProblem,
    describe_first_error,
    escape_for_log,
    explain_fetch_error,
)

MAX_CLOCK_SKEW = 30.0
REVOCATION_TIMEOUT = 5.0
_ERROR = re.compile(r"[a-z_]{1,60}")


class _Pushed(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")
    request_uri: str = Field(min_length=1, max_length=1000, pattern=r"^[!-~]+$")
    expires_in: int = Field(gt=0)


class TokenResponse(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")
    access_token: str = Field(min_length=1, repr=False)
    refresh_token: str | None = Field(default=None, repr=False)
    token_type: str
    scope: str
    sub: str


class OAuthRequests:
    """`nonce` is the last DPoP nonce of this server. It is kept from the pushed request to the callback."""

    def __init__(
        self,
        fetcher: Fetcher,
        server: AuthorizationServer,
        client: OAuthClient,
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

    async def push_authorization(self, *, did: str, state: str, challenge: str) -> str:
        """Push the authorization request. Returns the URL that the browser must open."""
        form = {
            "response_type": "code",
            "redirect_uri": self._client.redirect_uri,
            "scope": self._client.scope,
            "state": state,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "login_hint": did,
        }
        response = await self._post(self._server.request_endpoint, form)
        if response.status not in (200, 201):
            raise self._refusal(response, "request-refused", "the pushed request")
        try:
            pushed = _Pushed.model_validate(self._document(response))
        except ValidationError as error:
            raise self._broken(
                f"checklist 11: the reply to the pushed request: {describe_first_error(error)}"
            ) from None
        query = urlencode({"client_id": self._client.client_id, "request_uri": pushed.request_uri})
        return f"{self._server.authorization_endpoint}?{query}"

    async def redeem_code(self, *, code: str, verifier: str) -> TokenResponse:
        form = {
            "grant_type": "authorization_code",
            "redirect_uri": self._client.redirect_uri,
            "code": code,
            "code_verifier": verifier,
        }
        response = await self._post(self._server.token_endpoint, form)
        if response.status != 200:
            raise self._refusal(response, "code-refused", "the code")
        try:
            return TokenResponse.model_validate(self._document(response))
        except ValidationError as error:
            reason = f"checklist 21: the token reply: {describe_first_error(error)}"
            raise SignInProblem("token-broken", reason, place=self._place) from None

    async def revoke_tokens(self, tokens: TokenResponse) -> list[str]:
        """Revoke the tokens at the server. Returns the failures, for the log."""
        failures: list[str] = []
        if self._server.revocation_endpoint is None:
            return ["the server has no revocation endpoint"]
        for token in (tokens.refresh_token, tokens.access_token):
            if token is None:
                continue
            try:
                async with asyncio.timeout(REVOCATION_TIMEOUT):
                    response = await self._send(self._server.revocation_endpoint, {"token": token})
            except (FetchError, TimeoutError) as error:
                failures.append(str(error) or "the revocation timed out")
            else:
                if response.status not in (200, 204):
                    failures.append(f"the revocation endpoint answered {response.status} {_error_of(response)}")
        return failures

    async def _post(self, url: str, form: Mapping[str, str]) -> FetchResponse:
        try:
            response = await self._send(url, form)
        except FetchError as error:
            raise explain_fetch_error(error, "server") from None
        if 300 <= response.status < 400:
            raise self._broken(f"checklist 31: {url} redirects; redirects are not followed")
        if response.status >= 500:
            raise SignInProblem("server-unreachable", f"{url} answered {response.status}", place=self._place)
        if response.status < 300 and "dpop-nonce" not in response.headers:
            raise self._broken(f"checklist 15: {url} answered without DPoP-Nonce")
        return response

    async def _send(self, url: str, form: Mapping[str, str]) -> FetchResponse:
        """Send a request; send it once more when the server asks for a nonce. Proof and assertion are new each time."""
        response = await self._send_once(url, form)
        if _error_of(response) == "use_dpop_nonce" and "dpop-nonce" in response.headers:
            response = await self._send_once(url, form)
        return response

    async def _send_once(self, url: str, form: Mapping[str, str]) -> FetchResponse:
        proof = self._key.proof("POST", url, nonce=self.nonce, clock=self._clock)
        identified = {**form, **self._client.authentication(self._server.issuer, clock=self._clock)}
        response = await self._fetcher.post_form(url, identified, {"dpop": proof})
        self.nonce = response.headers.get("dpop-nonce", self.nonce)
        return response

    def _document(self, response: FetchResponse) -> dict[str, object]:
        try:
            return response.json()
        except FetchError as error:
            raise explain_fetch_error(error, "server") from None

    def _refusal(self, response: FetchResponse, code: ProblemCode, what: str) -> SignInProblem:
        skew = _skew(response, self._clock())
        reason = f"{what} was answered {response.status} {_error_of(response)}: {_description_of(response)}"
        if abs(skew) > MAX_CLOCK_SKEW:
            return SignInProblem("clock-skew", f"{reason}; the clocks differ by {skew:.0f} s", place=f"{abs(skew):.0f}")
        return SignInProblem(code, reason, place=self._place)

    def _broken(self, reason: str) -> SignInProblem:
        return SignInProblem("server-broken", reason, place=self._place)


def _error_of(response: FetchResponse) -> str:
    if response.status < 400:
        return ""
    try:
        found = response.json().get("error")
    except FetchError:
        return ""
    return found if isinstance(found, str) and _ERROR.fullmatch(found) else ""


def _description_of(response: FetchResponse) -> str:
    try:
        return escape_for_log(response.json().get("error_description"))
    except FetchError as error:
        return str(error)


def _skew(response: FetchResponse, now: float) -> float:
    try:
        return parsedate_to_datetime(response.headers["date"]).timestamp() - now
    except (KeyError, ValueError, TypeError):
        return 0.0
