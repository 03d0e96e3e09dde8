"""Who sent a request."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from freehold.errors import FreeholdError
from freehold.gateway.routing import RouteScope
from freehold.identity.sign_ins import SignIn
from freehold.identity.tokens import ApiToken


@dataclass(frozen=True, slots=True)
class Principal:
    """The owner's browser, one of the owner's API tokens, or nobody (on routes that are open to anyone)."""

    sign_in: SignIn | None = None
    token: ApiToken | None = None
    address: str = ""

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
