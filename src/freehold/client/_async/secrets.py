"""The vault: `home.secrets`."""

from freehold.client._async.connection import AsyncConnection
from freehold.client.secret_models import SecretRecord, SecretRef
from freehold.client.topic_protocol import quote_segment


class AsyncSecrets:
    """The token needs the scope `admin`. No call returns a value."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list(self) -> tuple[SecretRecord, ...]:
        """The names of the secrets, when each was set and last used."""
        return await self._connection.get("/v1/secrets", tuple[SecretRecord, ...])

    async def set(self, name: str, value: str) -> None:
        """Store a secret, or replace it."""
        await self._connection.put(f"/v1/secrets/{quote_segment(name)}", SecretRef, {"value": value})

    async def remove(self, name: str) -> None:
        await self._connection.delete(f"/v1/secrets/{quote_segment(name)}", SecretRef)
