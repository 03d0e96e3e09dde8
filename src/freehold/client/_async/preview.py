"""Looking at what runs inside: `home.preview`."""

from freehold.client._async.connection import AsyncConnection
from freehold.client.answers import PreviewAddress, PreviewPort, PreviewPorts


class AsyncPreview:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def ports(self) -> tuple[PreviewPort, ...]:
        """The ports that something inside listens on."""
        return (await self._connection.get("/v1/preview/ports", PreviewPorts)).ports

    async def open(self, port: int, *, path: str = "/") -> PreviewAddress:
        """An address for one browser. What it shows ends when this token does; needs the scope `terminal`."""
        return await self._connection.post(f"/v1/preview/{port}/open", PreviewAddress, {"path": path})
