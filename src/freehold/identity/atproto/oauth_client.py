"""What this Freehold is to an authorization server: a confidential client with a public address, else a loopback one."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey

from freehold.errors import FreeholdError

SCOPE = "atproto"
CALLBACK = "/oauth/callback"
METADATA = "/oauth/client-metadata.json"
JWKS = "/oauth/jwks.json"

_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"


@dataclass(frozen=True)
class Client:
    """`origin` is where a sign-in must begin: the answer comes back there, and so must the browser's cookie."""

    client_id: str
    origin: str
    key: ECKey | None

    @property
    def redirect_uri(self) -> str:
        return self.origin + CALLBACK

    def metadata(self) -> dict[str, object] | None:
        """The document served at `/oauth/client-metadata.json`, or None for a loopback client, which has none."""
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
            "scope": SCOPE,
            "dpop_bound_access_tokens": True,
            "token_endpoint_auth_method": "private_key_jwt",
            "token_endpoint_auth_signing_alg": "ES256",
            "jwks_uri": self.origin + JWKS,
        }

    def jwks(self) -> dict[str, object] | None:
        """The document served at `/oauth/jwks.json`: the public half only."""
        if self.key is None:
            return None
        public = {**self.key.as_dict(private=False), "kid": self.key.thumbprint(), "alg": "ES256", "use": "sig"}
        return {"keys": [public]}

    def authentication(self, issuer: str, *, clock: Callable[[], float]) -> dict[str, str]:
        """Form fields that say who asks. A confidential client signs anew for every request."""
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


def public_client(public_url: str, key: bytes) -> Client:
    """For a Freehold with a public https address; `key` is the PEM of `freehold.identity.keys`."""
    parts = urlsplit(public_url)
    if parts.scheme != "https" or not parts.hostname or parts.netloc != parts.hostname or parts.path not in ("", "/"):
        raise FreeholdError(
            "identity.public-url",
            f"{public_url} cannot be used for sign-in",
            hint="gateway.public_url in freehold.toml must be https and a host name, without a port or a path",
        )
    origin = f"https://{parts.hostname}"
    return Client(client_id=origin + METADATA, origin=origin, key=ECKey.import_key(key.decode()))


def loopback_client(port: int) -> Client:
    """For a Freehold that only this machine can reach. Servers accept 127.0.0.1 and not the name localhost."""
    origin = f"http://127.0.0.1:{port}"
    redirect = quote(origin + CALLBACK, safe="")
    return Client(client_id=f"http://localhost?redirect_uri={redirect}&scope={SCOPE}", origin=origin, key=None)
