"""Requests to the fleet with one answer: what it is doing, and what the owner decides about its nodes."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol

from freehold.errors import FreeholdError
from freehold.fleet.computer_lease import ComputerLease
from freehold.fleet.fleet_folder import FleetFolder, KnownNode
from freehold.fleet.head import FleetHead
from freehold.fleet.join_door import JoinDoor
from freehold.fleet.machine_store import StartedMachine
from freehold.fleet.placer import NodeRoom
from freehold.fleet.status import ComputerRow, FleetStatus, MachineRow, NodeRow, WaitRow
from freehold.strict_json import encode

ESCAPES_TIMEOUT = 180.0


class StartedMachines(Protocol):
    """What the autoscaler has started, and why it cannot start more."""

    @property
    def machines(self) -> Mapping[str, StartedMachine]: ...

    @property
    def trouble(self) -> str: ...


class HeadCommands:
    def __init__(
        self, head: FleetHead, folder: FleetFolder, door: JoinDoor, machines: StartedMachines | None = None
    ) -> None:
        self._head = head
        self._machines = machines
        self._folder = folder
        self._door = door

    def by_name(self) -> dict[str, Callable[[dict[str, Any]], Awaitable[Any]]]:
        return {
            "status": self._status,
            "code": self._make_code,
            "drain": self._drain,
            "remove": self._remove,
            "escapes": self._try_escapes,
        }

    async def _status(self, message: dict[str, Any]) -> Any:
        most = message.get("most")
        return encode(describe_fleet(self._head, most if isinstance(most, int) else None, self._machines))

    async def _make_code(self, _: dict[str, Any]) -> Any:
        return {"code": self._door.make_code()}

    async def _drain(self, message: dict[str, Any]) -> Any:
        name = self._check_node(message)
        await drain_node(self._head, self._folder, name, message.get("off") is not True)
        return {"computers": len(self._head.list_computers(name))}

    async def _remove(self, message: dict[str, Any]) -> Any:
        """Its computers are lost, and it must join again. Refused while it has some, unless that is wanted."""
        name = self._check_node(message)
        busy = self._head.list_computers(name)
        if busy and message.get("lose") is not True:
            raise FreeholdError(
                "fleet.still-running",
                f"{len(busy)} computers are on {name}",
                hint=f"First: freehold fleet drain {name}; or lose their work with --lose",
            )
        await remove_node(self._head, self._folder, name)
        return {"computers": len(busy)}

    async def _try_escapes(self, message: dict[str, Any]) -> Any:
        """Every attempt to get out of a computer, on one node."""
        name = self._check_node(message)
        link = self._head.find_link(name)
        if link is None or not link.is_connected:
            raise FreeholdError("fleet.unreachable", f"The node {name} is not connected")
        try:
            async with asyncio.timeout(ESCAPES_TIMEOUT):
                return await link.ask("escapes", quick=message.get("quick") is True)
        except TimeoutError:
            why = f"The node {name} did not end its attempts within {ESCAPES_TIMEOUT:g} s"
            raise FreeholdError("fleet.failed", why, hint="It may be busy: try it again, or with --quick") from None

    def _check_node(self, message: dict[str, Any]) -> str:
        name = str(message.get("node"))
        if name not in self._head.known:
            known = ", ".join(sorted(self._head.known)) or "none"
            raise FreeholdError("fleet.not-found", f"There is no node {name[:60]!r}", hint=f"The nodes: {known}")
        return name


async def drain_node(head: FleetHead, folder: FleetFolder, name: str, is_draining: bool) -> None:
    """A node that is not known is left alone."""

    def change(nodes: dict[str, KnownNode]) -> dict[str, KnownNode]:
        return nodes if name not in nodes else {**nodes, name: replace(nodes[name], is_draining=is_draining)}

    if name in head.known:
        head.set_draining(name, is_draining)  # at once: while it is written none is placed there
    await asyncio.to_thread(folder.change_nodes, change)


async def remove_node(head: FleetHead, folder: FleetFolder, name: str) -> None:
    """Idempotent."""
    await asyncio.to_thread(
        folder.change_nodes, lambda nodes: {other: node for other, node in nodes.items() if other != name}
    )
    head.remove_node(name)


def describe_fleet(head: FleetHead, most: int | None = None, machines: StartedMachines | None = None) -> FleetStatus:
    """`most` rows of computers, and of those that wait. Each node is listed always."""
    placer = head.placer
    placed = [lease for lease in head.leases.values() if lease.state != "waiting"]
    counts = Counter(lease.node.address.name for lease in placed if lease.node is not None)
    rooms = placer.nodes if placer is not None else {}
    nodes = (_describe_node(head, name, rooms.get(name), counts[name]) for name in sorted(head.known))
    waits = (
        WaitRow(wish.id[:12], wish.who, head.find_hostname(wish.id), wish.priority, wish.since, why)
        for wish, why in head.explain_first(most)
    )
    return FleetStatus(
        is_ready=placer is not None and placer.is_ready,
        nodes=tuple(nodes),
        computers=tuple(map(_describe_computer, placed[:most])),
        waiting=tuple(waits),
        computer_count=len(placed),
        waiting_count=len(head.queue),
        machines=()
        if machines is None
        else tuple(MachineRow(one.name, one.kind, one.state, one.trouble) for one in machines.machines.values()),
        trouble="" if machines is None else machines.trouble,
    )


def _describe_computer(lease: ComputerLease) -> ComputerRow:
    room = lease.order.room
    return ComputerRow(
        id=lease.id[:12],
        who=lease.order.who,
        name=lease.order.spec.hostname,
        node="" if lease.node is None else lease.node.address.name,
        state=lease.state,
        cpus=room.cpus,
        memory=room.memory,
        gpus=room.gpus,
    )


def _describe_node(head: FleetHead, name: str, room: NodeRoom | None, computers: int) -> NodeRow:
    known = head.known[name]
    trouble = head.explain_block(name) or ("" if room is not None else "Ray does not know it yet")
    has = room or NodeRoom(0.0, 0, 0.0, 0)
    return NodeRow(
        name=name,
        address=known.address,
        state="ready" if not trouble else "draining" if trouble == "draining" else "away",
        trouble="" if trouble == "draining" else trouble,
        labels=known.labels,
        computers=computers,
        cpus=has.cpus,
        free_cpus=has.free_cpus,
        memory=has.memory,
        free_memory=has.free_memory,
        gpus=has.gpus,
        free_gpus=has.free_gpus,
    )
