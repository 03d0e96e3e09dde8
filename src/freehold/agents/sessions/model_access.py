"""The model gateway as sessions use it. `freehold.egress.models.ModelGateway` satisfies this protocol."""

from typing import Protocol

from freehold.egress.models import ActiveStop, Endpoint, ModelUsage
from freehold.errors import FreeholdError


class ModelAccess(Protocol):
    @property
    def stopped(self) -> ActiveStop | None:
        """Set while the kill switch holds all agents."""
        ...

    def endpoint_for(self, provider: str | None, session: str) -> Endpoint:
        """Where the agent of a session reaches a provider, with a placeholder in the place of the key."""
        ...

    def set_turn(self, session: str, turn: str | None) -> None:
        """Requests of the session count for this turn from now on."""
        ...

    async def usage_of(self, session: str, turn: str | None = None) -> ModelUsage:
        """The tokens and the cost of a turn."""
        ...

    def blocked(self, session: str) -> FreeholdError | None:
        """Why requests of the current turn failed, if only the owner can change it: a budget, a provider that does not answer."""
        ...

    def end_session(self, session: str) -> None:
        """Revokes the placeholders of a session. Idempotent."""
        ...
