# made from _async/fleet.py by python -m tools.generate
"""Computers on other machines: `home.fleet`."""

from freehold.client._sync.connection import SyncConnection
from freehold.client.fleet_models import ChangedNode, FleetInfo
from freehold.client.topic_protocol import quote_segment


class SyncFleet:
    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def get(self) -> FleetInfo:
        """The nodes, the computers on them, and what waits for room and why."""
        return self._connection.get("/v1/fleet", FleetInfo)

    def drain(self, node: str, *, draining: bool = True) -> ChangedNode:
        """Give a node no more computers, or give it computers again. Needs the scope `admin`."""
        path = f"/v1/fleet/nodes/{quote_segment(node)}"
        return self._connection.patch(path, ChangedNode, {"draining": draining})

    def remove(self, node: str, *, lose: bool = False) -> ChangedNode:
        """Remove a node; with `lose` also one that has computers, which are lost. Needs the scope `admin`."""
        path = f"/v1/fleet/nodes/{quote_segment(node)}"
        return self._connection.delete(path, ChangedNode, {"lose": "true"} if lose else None)
