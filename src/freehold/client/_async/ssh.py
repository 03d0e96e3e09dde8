"""Keys for the side door: `home.ssh`."""

from freehold.client._async.connection import AsyncConnection, segment
from freehold.client.answers import SshCertificate, SshCredential, SshDoor, SshRevoked


class AsyncSsh:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def door(self) -> SshDoor:
        """Where the server is, and the key it shows."""
        return await self._connection.get("/v1/ssh", SshDoor)

    async def certify(self, public_key: str, *, hours: float | None = None, label: str = "") -> SshCertificate:
        """A certificate for a key that you made; it ends by itself, and with this token."""
        body = {"public_key": public_key, "hours": hours, "label": label}
        return await self._connection.post("/v1/ssh/certificates", SshCertificate, body)

    async def list(self) -> list[SshCredential]:
        """Every key that has not ended, the newest first."""
        return await self._connection.get("/v1/ssh/certificates", list[SshCredential])

    async def revoke(self, credential: str) -> SshRevoked:
        """End a key; its live connections end within a second."""
        return await self._connection.delete(f"/v1/ssh/certificates/{segment(credential)}", SshRevoked)
