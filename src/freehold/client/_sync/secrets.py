# made from _async/secrets.py by python -m tools.generate
"""The vault: `home.secrets`."""

from freehold.client._sync.connection import SyncConnection
from freehold.client.secret_models import SecretRecord, SecretRef
from freehold.client.topic_protocol import quote_segment


class SyncSecrets:
    """The token needs the scope `admin`. No call returns a value."""

    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def list(self) -> tuple[SecretRecord, ...]:
        """The names of the secrets, when each was set and last used."""
        return self._connection.get("/v1/secrets", tuple[SecretRecord, ...])

    def set(self, name: str, value: str) -> None:
        """Store a secret, or replace it."""
        self._connection.put(f"/v1/secrets/{quote_segment(name)}", SecretRef, {"value": value})

    def remove(self, name: str) -> None:
        self._connection.delete(f"/v1/secrets/{quote_segment(name)}", SecretRef)
