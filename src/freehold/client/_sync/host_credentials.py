# made from _async/host_credentials.py by python -m tools.generate
"""Credentials: `home.credentials`."""

from freehold.client._sync.connection import SyncConnection
from freehold.client.credential_models import CredentialInfo


class SyncCredentials:
    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def list(self) -> tuple[CredentialInfo, ...]:
        """The credentials of the manifest, with their last uses. A secret is never shown."""
        return self._connection.get("/v1/credentials", tuple[CredentialInfo, ...])
