# made from _async/ssh.py by python -m tools.generate
"""Keys for the side door: `home.ssh`."""

from freehold.client._sync.connection import SyncConnection, segment
from freehold.client.answers import SshCertificate, SshCredential, SshDoor, SshRevoked


class SyncSsh:
    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def door(self) -> SshDoor:
        """Where the server is, and the key it shows."""
        return self._connection.get("/v1/ssh", SshDoor)

    def certify(self, public_key: str, *, hours: float | None = None, label: str = "") -> SshCertificate:
        """A certificate for a key that you made; it ends by itself, and with this token."""
        body = {"public_key": public_key, "hours": hours, "label": label}
        return self._connection.post("/v1/ssh/certificates", SshCertificate, body)

    def list(self) -> list[SshCredential]:
        """Every key that has not ended, the newest first."""
        return self._connection.get("/v1/ssh/certificates", list[SshCredential])

    def revoke(self, credential: str) -> SshRevoked:
        """End a key; its live connections end within a second."""
        return self._connection.delete(f"/v1/ssh/certificates/{segment(credential)}", SshRevoked)
