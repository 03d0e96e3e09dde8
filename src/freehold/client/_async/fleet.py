"""Computers on other machines: `home.fleet`."""

from freehold.client._async.connection import AsyncConnection
from freehold.client.fleet_models import ChangedNode, FleetInfo
from freehold.client.topic_protocol import quote_segment


class AsyncFleet:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def get(self) -> FleetInfo:
        """The nodes, the computers on them, and what waits for room and why."""
        return await self._connection.get("/v1/fleet", FleetInfo)

    async def drain(self, node: str, *, draining: bool = True) -> ChangedNode:
        """Give a node no more computers, or give it computers again. Needs the scope `admin`."""
        path = f"/v1/fleet/nodes/{quote_segment(node)}"
        return await self._connection.patch(path, ChangedNode, {"draining": draining})

    async def remove(self, node: str, *, lose: bool = False) -> ChangedNode:
        """Remove a node; with `lose` also one that has computers, which are lost. Needs the scope `admin`."""
        path = f"/v1/fleet/nodes/{quote_segment(node)}"
        return await self._connection.delete(path, ChangedNode, {"lose": "true"} if lose else None)
