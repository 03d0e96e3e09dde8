"""Previews of servers in the computer: `home.preview`."""

from freehold.client._async.connection import AsyncConnection
from freehold.client.models import NamedSite, NamedSites, PreviewAddress, PreviewPort, PreviewPorts


class AsyncPreview:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def ports(self) -> tuple[PreviewPort, ...]:
        """The ports in the computer on which a process listens."""
        return (await self._connection.get("/v1/preview/ports", PreviewPorts)).ports

    async def open(self, port: int, *, path: str = "/") -> PreviewAddress:
        """A one-time address for a browser. The preview ends with this token. Needs the scope `terminal`."""
        return await self._connection.post(f"/v1/preview/{port}/open", PreviewAddress, {"path": path})

    async def sites(self) -> tuple[NamedSite, ...]:
        """The sites of features: the desktop and the editor."""
        return (await self._connection.get("/v1/preview/sites", NamedSites)).sites

    async def open_site(self, name: str) -> PreviewAddress:
        """Starts a site, and a one-time address for a browser. Needs the scope `terminal`."""
        return await self._connection.post(f"/v1/preview/sites/{name}/open", PreviewAddress, {})

    async def stop_site(self, name: str) -> NamedSite:
        """Ends the programs of a site. Needs the scope `terminal`."""
        return await self._connection.post(f"/v1/preview/sites/{name}/stop", NamedSite, {})
