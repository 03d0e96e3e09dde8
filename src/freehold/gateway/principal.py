"""Who sent a request."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from freehold.errors import FreeholdError
from freehold.gateway.route_scope import RouteScope
from freehold.identity.sign_ins import SignIn
from freehold.identity.tokens import ApiToken


@dataclass(frozen=True, slots=True)
class RequestSignature:
    """A request that another Freehold has signed. `token` says what it may do, and ends when it is revoked.

    `signer` is its public key, and `body` the SHA-256 of the only body that the signature covers, in hex digits.
    """

    token: ApiToken
    signer: str
    body: str


@runtime_checkable
class SignatureVerifier(Protocol):
    """Knows the keys of other Freeholds."""

    def verify(self, header: bytes, method: str, url: str) -> RequestSignature | None:
        """None when nobody signed it who is known. Raises FreeholdError when a known key has signed something else.

        Does not block. `header` is what follows `Nostr` in the header Authorization.
        """
        ...


@dataclass(frozen=True, slots=True)
class Principal:
    """The owner's browser, one of the owner's API tokens, another Freehold, or nobody (on routes open to anyone)."""

    sign_in: SignIn | None = None
    token: ApiToken | None = None
    address: str = ""
    signature: RequestSignature | None = None
    """Of another Freehold. `token` is then the one that it was given."""

    @property
    def who(self) -> str:
        """As the timeline records it."""
        if self.token is not None:
            return f"token:{self.token.name}"
        return "owner" if self.sign_in is not None else "anyone"

    def has_scope(self, scope: RouteScope) -> bool:
        match scope:
            case "anyone":
                return True
            case "browser":
                return self.sign_in is not None
            case token_scope:
                return self.sign_in is not None or (self.token is not None and self.token.allows(token_scope))

    def require(self, scope: RouteScope) -> None:
        """For what a route does only with a further scope. Raises `identity.wrong-scope`."""
        if not self.has_scope(scope):
            raise missing_scope(scope)


def missing_scope(scope: RouteScope) -> FreeholdError:
    """What a token is told that lacks a scope."""
    if scope == "browser":
        return FreeholdError("identity.browser-only", "An API token may not do this", hint="Sign in with a browser")
    hint = f"Create a token with this scope: freehold token create NAME --scope {scope}"
    return FreeholdError("identity.wrong-scope", f"This token lacks the scope {scope}", hint=hint)


def principal_of(scope: Mapping[str, Any]) -> Principal:
    """The principal that the guard has stored in a request or socket."""
    principal = scope["state"]["principal"]
    assert isinstance(principal, Principal)
    return principal
