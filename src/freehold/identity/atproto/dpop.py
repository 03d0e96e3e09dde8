"""DPoP: a key for one sign-in, and proofs that the holder of the key sent a request."""

import base64
import hashlib
import json
import secrets
from collections.abc import Callable
from typing import Self

from joserfc import jwt
from joserfc.jwk import ECKey


class DpopKey:
    def __init__(self, key: ECKey) -> None:
        self._key = key

    @classmethod
    def generate(cls) -> Self:
        return cls(ECKey.generate_key("P-256"))

    @classmethod
    def load(cls, text: str) -> Self:
        return cls(ECKey.import_key(json.loads(text)))

    def dump(self) -> str:
        """The key with its private part. Store it only encrypted, in a sign-in attempt."""
        return json.dumps(self._key.as_dict(private=True))

    def proof(
        self, method: str, url: str, *, nonce: str | None, clock: Callable[[], float], token: str | None = None
    ) -> str:
        """A new proof for one request. `token` is the access token that the request uses, if it uses one."""
        claims: dict[str, object] = {
            "jti": secrets.token_urlsafe(16),
            "htm": method,
            "htu": url.split("?")[0].split("#")[0],
            "iat": int(clock()),
        }
        if nonce is not None:
            claims["nonce"] = nonce
        if token is not None:
            claims["ath"] = base64.urlsafe_b64encode(hashlib.sha256(token.encode()).digest()).rstrip(b"=").decode()
        header = {"typ": "dpop+jwt", "alg": "ES256", "jwk": self._key.as_dict(private=False)}
        return jwt.encode(header, claims, self._key, algorithms=["ES256"])
