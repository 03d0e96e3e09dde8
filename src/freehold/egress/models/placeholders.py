"""Placeholders: they stand in the computer in the place of keys. The model gateway accepts each for one session only."""

import secrets
from dataclasses import dataclass, replace

from freehold.egress.models.provider import Provider

PREFIX = "freehold-placeholder-"


@dataclass(frozen=True)
class Endpoint:
    """How a program inside the computer uses a provider."""

    base_url: str
    key: str
    provider: Provider


@dataclass(frozen=True)
class PlaceholderGrant:
    """The session of a placeholder, and its current turn."""

    provider: str
    session: str
    turn: str | None = None


class Placeholders:
    """All placeholders of this process. Those of an earlier gateway process are not accepted."""

    def __init__(self) -> None:
        self._grants: dict[str, PlaceholderGrant] = {}
        self._tokens: dict[tuple[str, str], str] = {}
        self._turns: dict[str, str] = {}

    def issue(self, provider: Provider, session: str) -> Endpoint:
        """Idempotent: the same for the same session and provider."""
        token = self._tokens.get((provider.name, session))
        if token is None:
            token = PREFIX + secrets.token_urlsafe(24)
            self._tokens[provider.name, session] = token
            self._grants[token] = PlaceholderGrant(provider.name, session)
        return Endpoint(provider.inside, token, provider)

    def find(self, token: str, provider: str) -> PlaceholderGrant | None:
        """The grant of a placeholder, at its own provider only."""
        grant = self._grants.get(token)
        if grant is None or grant.provider != provider:
            return None
        return replace(grant, turn=self._turns.get(grant.session))

    def set_turn(self, session: str, turn: str | None) -> None:
        if turn is None:
            self._turns.pop(session, None)
        else:
            self._turns[session] = turn

    def revoke(self, session: str) -> None:
        """Idempotent."""
        self._turns.pop(session, None)
        for key in [key for key in self._tokens if key[1] == session]:
            del self._grants[self._tokens.pop(key)]
