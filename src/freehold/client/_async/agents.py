"""The agents of this Freehold: `home.agents`."""

from freehold.client._async.connection import AsyncConnection
from freehold.client.session_models import AgentInfo, RegistryAgentInfo

REGISTRY_TIMEOUT = 90.0


class AsyncAgents:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list(self) -> tuple[AgentInfo, ...]:
        """All known agents, installed or not."""
        return await self._connection.get("/v1/agents", tuple[AgentInfo, ...])

    async def read_registry(self, url: str) -> tuple[RegistryAgentInfo, ...]:
        """The agents of an ACP registry, whose index is read through egress. Nothing is added."""
        return await self._connection.post(
            "/v1/agents/registry", tuple[RegistryAgentInfo, ...], {"url": url}, timeout=REGISTRY_TIMEOUT
        )
