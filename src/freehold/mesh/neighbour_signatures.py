"""Who signed a request: a neighbour that is paired, or a stranger who has a pairing code."""

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from freehold.errors import FreeholdError
from freehold.gateway.addresses import rate_limit_key
from freehold.gateway.error_responses import RateLimited
from freehold.gateway.principal import RequestSignature
from freehold.gateway.rate_limit import RateLimit
from freehold.gateway.steady_time import steady_time
from freehold.identity.tokens import ApiTokens
from freehold.mesh.ahead_times import AheadTimes
from freehold.mesh.http_signature import SignatureCheck, read_signature, signed_body
from freehold.mesh.neighbours import Neighbours

if TYPE_CHECKING:
    from starlette.types import Scope

PAIRING_PATHS = ("/v1/mesh/introduction", "/v1/mesh/pair")
"""What somebody may send who is not known: `verify_stranger` is for them."""


class NeighbourSignatures:
    """`origins` are the addresses at which this Freehold is reached, by their host."""

    def __init__(
        self, neighbours: Neighbours, tokens: ApiTokens, origins: Mapping[str, str], ahead: AheadTimes
    ) -> None:
        self._neighbours = neighbours
        self._ahead = ahead
        self._tokens = tokens
        self._origins = origins
        self._check = SignatureCheck()
        self.rates = RateLimit(rate=50, burst=500)
        self._pairing_rates = RateLimit(rate=1 / 6, burst=20)
        self.heard: set[str] = set()
        """The keys whose requests were let in since somebody last looked."""

    def verify(self, header: bytes, method: str, url: str) -> RequestSignature | None:
        """See `SignatureVerifier`. Only who is known costs more than reading the header, and only what is let in is
        remembered: one neighbour that sends too much leaves room for the others."""
        event = read_signature(header)
        if event is None or url.endswith(PAIRING_PATHS):
            return None
        found = self._neighbours.find(event.pubkey)
        if found is None:
            if self._neighbours.was_evicted(event.pubkey) and event.is_signed:
                raise _evicted()
            return None
        self._check.check(event, method, url)
        if self._ahead.was_used(event.pubkey, event.created_at):
            raise FreeholdError("mesh.replayed", "A request of this moment was received before the last start")
        wait = self.rates.wait(event.pubkey)
        if wait > 0:
            raise RateLimited("mesh.too-many", "Too many requests of this neighbour", wait)
        token = self._tokens.find_active(found.token)
        if token is None:
            raise _evicted()
        self._check.use(event)
        self._ahead.note(event.pubkey, event.created_at, steady_time())
        self.heard.add(event.pubkey)
        return RequestSignature(token, event.pubkey, signed_body(event))

    def verify_stranger(self, header: bytes, method: str, url: str, body: bytes) -> str:
        """The key that signed a request of somebody who is not paired yet. Raises `mesh.bad-signature`."""
        event = read_signature(header)
        if event is None:
            raise FreeholdError("mesh.unsigned", "The request is not signed")
        self._check.check(event, method, url)
        if signed_body(event) != hashlib.sha256(body).hexdigest():
            raise FreeholdError("mesh.bad-signature", "The body of the request is not the one that was signed")
        self._check.use(event)
        return event.pubkey

    def count_pairing(self, address: str) -> None:
        """Raises `mesh.too-many`."""
        wait = self._pairing_rates.wait(rate_limit_key(address))
        if wait > 0:
            raise RateLimited("mesh.too-many", "Too many attempts to pair", wait)

    def signed_url(self, scope: "Scope") -> str:
        """The address that a signature of this request must name."""
        host = next((value for name, value in scope["headers"] if name == b"host"), b"").decode("latin-1").lower()
        query: bytes = scope["query_string"]
        target: bytes = scope["raw_path"] + (b"?" + query if query else b"")
        return self._origins.get(host, "") + target.decode("latin-1")


def _evicted() -> FreeholdError:
    return FreeholdError(
        "mesh.evicted", "This Freehold no longer knows yours", hint="Ask its owner for a new pairing code"
    )
