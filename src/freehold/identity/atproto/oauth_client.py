"""This Freehold as an OAuth client: confidential when it has a public address, else a loopback client."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import quote, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey

from freehold.errors import FreeholdError

SCOPE = "atproto"
CALLBACK = "/oauth/callback"
METADATA = "/oauth/client-metadata.json"
JWKS = "/oauth/jwks.json"
RECORD_CALLBACK = "/oauth/record/callback"
RECORD_METADATA = "/oauth/record/client-metadata.json"

_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


@dataclass(frozen=True)
class OAuthClient:
    """`origin` is where a sign-in must start, because the callback and the cookie of the browser belong to it."""

    client_id: str
    origin: str
    key: ECKey | None
    scope: str = SCOPE
    callback: str = CALLBACK

    @property
    def redirect_uri(self) -> str:
        return self.origin + self.callback

    def metadata(self) -> dict[str, object] | None:
        """The document served at `/oauth/client-metadata.json`, or None for a loopback client."""
        if self.key is None:
            return None
        return {
            "client_id": self.client_id,
            "client_name": "Freehold",
            "client_uri": self.origin,
            "application_type": "web",
            "redirect_uris": [self.redirect_uri],
            "response_types": ["code"],
            "grant_types": ["authorization_code"],
            "scope": self.scope,
            "dpop_bound_access_tokens": True,
            "token_endpoint_auth_method": "private_key_jwt",
            "token_endpoint_auth_signing_alg": "ES256",
            "jwks_uri": self.origin + JWKS,
        }

    def jwks(self) -> dict[str, object] | None:
        """The document served at `/oauth/jwks.json`: the public key. None for a loopback client."""
        if self.key is None:
            return None
        public = {**self.key.as_dict(private=False), "kid": self.key.thumbprint(), "alg": "ES256", "use": "sig"}
        return {"keys": [public]}

    def authentication(self, issuer: str, *, clock: Callable[[], float]) -> dict[str, str]:
        """The form fields that authenticate this client. A confidential client signs a new assertion for each request."""
        if self.key is None:
            return {"client_id": self.client_id}
        now = int(clock())
        claims = {
            "iss": self.client_id,
            "sub": self.client_id,
            "aud": issuer,
            "jti": secrets.token_urlsafe(16),
            "iat": now,
            "exp": now + 60,
        }
        header = {"alg": "ES256", "kid": self.key.thumbprint()}
        return {
            "client_id": self.client_id,
            "client_assertion_type": _ASSERTION,
            "client_assertion": jwt.encode(header, claims, self.key, algorithms=["ES256"]),
        }


def public_client(public_url: str, key: bytes) -> OAuthClient:
    """The client of a Freehold with a public https address. `key` is the PEM of `freehold.identity.keys`."""
    parts = urlsplit(public_url)
    if parts.scheme != "https" or not parts.hostname or parts.netloc != parts.hostname or parts.path not in ("", "/"):
        raise FreeholdError(
            "identity.public-url",
            f"gateway.public_url {public_url} cannot be used for sign-in",
            hint="Set it to https and a host name, without a port or a path, such as https://agent.example.com",
        )
    origin = f"https://{parts.hostname}"
    return OAuthClient(client_id=origin + METADATA, origin=origin, key=ECKey.import_key(key.decode()))


def loopback_client(port: int) -> OAuthClient:
    """The client of a Freehold that only this machine can reach. Servers accept 127.0.0.1, not the name localhost."""
    origin = f"http://127.0.0.1:{port}"
    return OAuthClient(client_id=_loopback_id(origin + CALLBACK, SCOPE), origin=origin, key=None)


def record_client(client: OAuthClient, collection: str) -> OAuthClient:
    """The same Freehold as a client of its own, which asks to write records of one collection and nothing else.

    The client of sign-ins can never ask for that.
    """
    scope = f"{SCOPE} repo:{collection}"
    loopback = _loopback_id(client.origin + RECORD_CALLBACK, scope)
    id = loopback if client.key is None else client.origin + RECORD_METADATA
    return replace(client, client_id=id, scope=scope, callback=RECORD_CALLBACK)


def _loopback_id(redirect: str, scope: str) -> str:
    return f"http://localhost?redirect_uri={quote(redirect, safe='')}&scope={quote(scope, safe='')}"
