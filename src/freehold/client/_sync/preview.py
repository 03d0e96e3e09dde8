# made from _async/preview.py by python -m tools.generate
"""Previews of servers in the computer: `home.preview`."""

from freehold.client._sync.connection import SyncConnection
from freehold.client.models import NamedSite, NamedSites, PreviewAddress, PreviewPort, PreviewPorts


class SyncPreview:
    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def ports(self) -> tuple[PreviewPort, ...]:
        """The ports in the computer on which a process listens."""
        return (self._connection.get("/v1/preview/ports", PreviewPorts)).ports

    def open(self, port: int, *, path: str = "/") -> PreviewAddress:
        """A one-time address for a browser. The preview ends with this token. Needs the scope `terminal`."""
        return self._connection.post(f"/v1/preview/{port}/open", PreviewAddress, {"path": path})

    def sites(self) -> tuple[NamedSite, ...]:
        """The sites of features: the desktop and the editor."""
        return (self._connection.get("/v1/preview/sites", NamedSites)).sites

    def open_site(self, name: str) -> PreviewAddress:
        """Starts a site, and a one-time address for a browser. Needs the scope `terminal`."""
        return self._connection.post(f"/v1/preview/sites/{name}/open", PreviewAddress, {})

    def stop_site(self, name: str) -> NamedSite:
        """Ends the programs of a site. Needs the scope `terminal`."""
        return self._connection.post(f"/v1/preview/sites/{name}/stop", NamedSite, {})
