"""Credentials: `home.credentials`."""

from freehold.client._async.connection import AsyncConnection
from freehold.client.credential_models import CredentialInfo


class AsyncCredentials:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list(self) -> tuple[CredentialInfo, ...]:
        """The credentials of the manifest, with their last uses. A secret is never shown."""
        return await self._connection.get("/v1/credentials", tuple[CredentialInfo, ...])
