"""SSH keys: `home.ssh`."""

from freehold.client._async.connection import AsyncConnection
from freehold.client.models import SshCertificate, SshCredential, SshRevoked, SshServerInfo
from freehold.client.topic_protocol import quote_segment


class AsyncSsh:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def server(self) -> SshServerInfo:
        """The address and the host key of the SSH server."""
        return await self._connection.get("/v1/ssh", SshServerInfo)

    async def certify(self, public_key: str, *, hours: float | None = None, label: str = "") -> SshCertificate:
        """A certificate for your public key. It expires, and it ends with this token."""
        body = {"public_key": public_key, "hours": hours, "label": label}
        return await self._connection.post("/v1/ssh/certificates", SshCertificate, body)

    async def list(self) -> list[SshCredential]:
        """All keys that have not expired, the newest first."""
        return await self._connection.get("/v1/ssh/certificates", list[SshCredential])

    async def revoke(self, credential: str) -> SshRevoked:
        """Revoke a key. Its connections end within a second."""
        return await self._connection.delete(f"/v1/ssh/certificates/{quote_segment(credential)}", SshRevoked)
