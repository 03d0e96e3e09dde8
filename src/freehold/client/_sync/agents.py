# made from _async/agents.py by python -m tools.generate
"""The agents of this Freehold: `home.agents`."""

from freehold.client._sync.connection import SyncConnection
from freehold.client.session_models import AgentInfo, RegistryAgentInfo

REGISTRY_TIMEOUT = 90.0


class SyncAgents:
    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def list(self) -> tuple[AgentInfo, ...]:
        """All known agents, installed or not."""
        return self._connection.get("/v1/agents", tuple[AgentInfo, ...])

    def read_registry(self, url: str) -> tuple[RegistryAgentInfo, ...]:
        """The agents of an ACP registry, whose index is read through egress. Nothing is added."""
        return self._connection.post(
            "/v1/agents/registry", tuple[RegistryAgentInfo, ...], {"url": url}, timeout=REGISTRY_TIMEOUT
        )
