"""How Freehold signs in to a Solid server: client credentials, and a proof of possession (DPoP) with each request."""

import base64
import hashlib
import secrets
import time
from collections.abc import AsyncGenerator
from typing import Any
from urllib.parse import urlsplit

import httpx2
from joserfc import jwt
from joserfc.jwk import ECKey

from freehold.observe.secrets import Secret

EARLY = 30.0
"""Seconds before its end that a token is renewed."""
MAX_LIFE = 3600.0
HERE = frozenset({"localhost", "127.0.0.1", "::1"})


class SignInFailed(Exception):
    """The server did not give a token. The text never holds the secret."""


def is_safe(url: str) -> bool:
    """Encrypted, or on this machine."""
    parts = urlsplit(url)
    return parts.hostname is not None and (
        parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in HERE)
    )


class SolidSignIn(httpx2.Auth):
    """Adds a token and a proof to each request. A token that the server no longer takes is renewed once."""

    requires_response_body = True

    def __init__(self, issuer: str, id: str, secret: Secret) -> None:
        self._issuer = issuer if issuer.endswith("/") else f"{issuer}/"
        self._basic = httpx2.BasicAuth(id, secret.reveal())
        self._key = ECKey.generate_key("P-256")
        self._endpoint = ""
        self._token, self._ends = "", 0.0

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        for is_last in (False, True):
            if time.monotonic() > self._ends:
                if not self._endpoint:
                    answer = yield httpx2.Request("GET", f"{self._issuer}.well-known/openid-configuration")
                    self._endpoint = _read_endpoint(await _read_json(answer), self._issuer)
                asked = httpx2.Request(
                    "POST",
                    self._endpoint,
                    data={"grant_type": "client_credentials", "scope": "webid"},
                    headers={"DPoP": self._proof("POST", self._endpoint)},
                )
                answer = yield next(self._basic.auth_flow(asked))
                self._take(await _read_json(answer))
            request.headers["Authorization"] = f"DPoP {self._token}"
            request.headers["DPoP"] = self._proof(request.method, str(request.url), self._token)
            answer = yield request
            if answer.status_code != 401 or is_last:
                return
            self._ends = 0.0

    def _proof(self, method: str, url: str, token: str = "") -> str:
        claims: dict[str, Any] = {
            "htu": url.partition("#")[0].partition("?")[0],
            "htm": method,
            "jti": secrets.token_hex(16),
            "iat": int(time.time()),
        }
        if token:
            claims["ath"] = base64.urlsafe_b64encode(hashlib.sha256(token.encode()).digest()).rstrip(b"=").decode()
        head = {"alg": "ES256", "typ": "dpop+jwt", "jwk": self._key.as_dict(private=False)}
        return jwt.encode(head, claims, self._key, algorithms=["ES256"])

    def _take(self, answer: dict[str, Any]) -> None:
        token, life = answer.get("access_token"), answer.get("expires_in", 0)
        if not isinstance(token, str) or not token or not isinstance(life, int | float):
            raise SignInFailed("the answer has no token")
        # First the smaller one: a number of many digits is no float.
        self._token, self._ends = token, time.monotonic() + max(0.0, float(min(life, MAX_LIFE)) - EARLY)


async def _read_json(answer: httpx2.Response) -> dict[str, Any]:
    await answer.aread()
    try:
        found = answer.json() if len(answer.content) <= 256 * 1024 else None
    except (ValueError, RecursionError):
        found = None
    if answer.status_code != 200 or not isinstance(found, dict):
        raise SignInFailed(f"{answer.request.url.host} answered {answer.status_code} to the sign-in")
    return found


def _read_endpoint(found: dict[str, Any], issuer: str) -> str:
    """Where tokens are given out. A server elsewhere cannot have the credentials sent to a program of this machine."""
    endpoint = found.get("token_endpoint")
    if not isinstance(endpoint, str) or not is_safe(endpoint):
        raise SignInFailed("the server names no encrypted address for tokens")
    if urlsplit(endpoint).hostname in HERE and urlsplit(issuer).hostname not in HERE:
        raise SignInFailed("the server names an address of this machine for tokens")
    return endpoint
