# made from _async/preview.py by python -m tools.generate
"""Looking at what runs inside: `home.preview`."""

from freehold.client._sync.connection import SyncConnection
from freehold.client.answers import PreviewAddress, PreviewPort, PreviewPorts


class SyncPreview:
    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def ports(self) -> tuple[PreviewPort, ...]:
        """The ports that something inside listens on."""
        return (self._connection.get("/v1/preview/ports", PreviewPorts)).ports

    def open(self, port: int, *, path: str = "/") -> PreviewAddress:
        """An address for one browser. What it shows ends when this token does; needs the scope `terminal`."""
        return self._connection.post(f"/v1/preview/{port}/open", PreviewAddress, {"path": path})
