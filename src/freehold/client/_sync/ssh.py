# made from _async/ssh.py by python -m tools.generate
"""SSH keys: `home.ssh`."""

from freehold.client._sync.connection import SyncConnection
from freehold.client.models import SshCertificate, SshCredential, SshRevoked, SshServerInfo
from freehold.client.topic_protocol import quote_segment


class SyncSsh:
    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def server(self) -> SshServerInfo:
        """The address and the host key of the SSH server."""
        return self._connection.get("/v1/ssh", SshServerInfo)

    def certify(self, public_key: str, *, hours: float | None = None, label: str = "") -> SshCertificate:
        """A certificate for your public key. It expires, and it ends with this token."""
        body = {"public_key": public_key, "hours": hours, "label": label}
        return self._connection.post("/v1/ssh/certificates", SshCertificate, body)

    def list(self) -> list[SshCredential]:
        """All keys that have not expired, the newest first."""
        return self._connection.get("/v1/ssh/certificates", list[SshCredential])

    def revoke(self, credential: str) -> SshRevoked:
        """Revoke a key. Its connections end within a second."""
        return self._connection.delete(f"/v1/ssh/certificates/{quote_segment(credential)}", SshRevoked)
