"""The head of a fleet: finds room for computers, starts them on nodes, and brings their files back.

A computer belongs to the client that asked for it, by one connection. When the client goes, the computer ends. When the
head goes, clients and nodes wait for the next one, and find each other again.
"""

import asyncio
import contextlib
import logging
import secrets
import time
from dataclasses import replace
from typing import Any

from freehold.errors import FreeholdError
from freehold.fleet.certificates import FleetKey, pinned_context
from freehold.fleet.computer_lease import LOST, ComputerLease, LeaseOrder
from freehold.fleet.fleet_folder import KnownNode
from freehold.fleet.node_link import NodeAddress, NodeLink, Notice
from freehold.fleet.placer import RayPlacer, RoomRequest
from freehold.fleet.room_queue import RoomQueue, RoomWish
from freehold.fleet.shown_parts import ShownParts
from freehold.strict_json import encode

ADOPT_SECONDS = 20.0
"""How long a computer that a node has is kept for a client that has not come back yet."""
TELL_PAUSE = 1.0
MAX_TOLD = 200
"""How many of those that wait are told why. The others wait for these."""
_log = logging.getLogger("freehold.fleet")


class FleetHead:
    """`run` it with the placer. Nodes are added and removed while it runs."""

    def __init__(self, own: FleetKey, nodes: dict[str, KnownNode], *, quota: int, save_every: float) -> None:
        self._own = own
        self.known = dict(nodes)
        self._save_every = save_every
        self._group = asyncio.TaskGroup()
        self._links: dict[str, tuple[NodeLink, asyncio.Task[None]]] = {}
        self._shown = ShownParts()
        self._started = time.monotonic()
        self.placer: RayPlacer | None = None
        self._ray = ""
        self.leases: dict[str, ComputerLease] = {}
        self.queue = RoomQueue(self._ask_placer, self._withdraw, quota, self.list_blocked)

    async def run(self, placer: RayPlacer) -> None:
        """Until cancelled. Computers stay on their nodes: the next head may find them again."""
        self.placer = placer
        async with self._group:
            for node in self.known.values():
                self._connect(node)
            self._group.create_task(placer.run())
            self._group.create_task(self._tell_reasons())
            self._group.create_task(self._save_all())

    # Nodes

    def add_node(self, node: KnownNode) -> None:
        """It has joined, perhaps again."""
        self._disconnect(node.name)
        self.known[node.name] = node
        self._connect(node)

    def remove_node(self, name: str) -> None:
        self.known.pop(name, None)
        self._disconnect(name)
        self._lose_node(name)

    def set_draining(self, name: str, is_draining: bool) -> None:
        self.known[name] = replace(self.known[name], is_draining=is_draining)
        self.queue.ask_again()

    def find_link(self, name: str) -> NodeLink | None:
        found = self._links.get(name)
        return found[0] if found is not None else None

    def list_blocked(self) -> set[str]:
        """Nodes that get no new computers."""
        return {name for name in self.known if self.explain_block(name)}

    def explain_block(self, name: str) -> str:
        """Why a node gets no computers; empty if it does."""
        link = self.find_link(name)
        if link is None or not link.is_connected:
            return f"not connected: {link.trouble}" if link is not None else "not connected"
        if link.skew:
            return link.skew
        return "draining" if self.known[name].is_draining else ""

    def tell_ray(self, session: str) -> None:
        """Ray was started again here: nodes need not wait for the old one, which they would do for a minute."""
        self._ray = session
        for link, _ in self._links.values():
            if link.is_connected:
                self._group.create_task(self._tell_ray(link))

    async def _tell_ray(self, link: NodeLink) -> None:
        with contextlib.suppress(FreeholdError):
            await link.ask("ray", session=self._ray)

    def _connect(self, node: KnownNode) -> None:
        context = pinned_context(self._own, node.certificate, server=False)
        address = NodeAddress(node.name, node.address, node.port, context)
        link = NodeLink(address, self._take_found, self._take_notice, self._lose_node)
        self._links[node.name] = link, self._group.create_task(link.run(), name=f"node {node.name}")

    def _disconnect(self, name: str) -> None:
        if name in self._links:
            self._links.pop(name)[1].cancel()

    def _take_found(self, name: str, computers: list[str], ended: dict[str, int]) -> None:
        for lease in list(self.leases.values()):
            if lease.node is not None and lease.node.address.name == name and lease.state == "running":
                if lease.id not in computers:
                    self._end(lease, LOST, f"The node {name} has started again")
                elif lease.id in ended:
                    self._end(lease, ended[lease.id])
        link = self.find_link(name)
        if self._ray and link is not None:
            self._group.create_task(self._tell_ray(link))
        strangers = [id for id in computers if id not in self.leases]
        if strangers:
            self._group.create_task(self._end_strangers(name, strangers))
        self.queue.ask_again()

    async def _end_strangers(self, name: str, ids: list[str]) -> None:
        """Computers of clients that did not come back, or that were told lost."""
        await asyncio.sleep(max(0.0, self._started + ADOPT_SECONDS - time.monotonic()))
        link = self.find_link(name)
        for id in ids:
            if id not in self.leases and link is not None:
                with contextlib.suppress(FreeholdError):
                    await link.ask("stop", id, grace=0)

    def _take_notice(self, name: str, notice: Notice) -> None:
        lease = self.leases.get(str(notice.get("computer")))
        if lease is None or lease.node is None or lease.node.address.name != name:
            return
        if notice["notice"] == "ended":
            if lease.state == "running":
                self._end(lease, int(notice["code"]))
        else:
            lease.tell(notice)

    def _lose_node(self, name: str) -> None:
        for lease in list(self.leases.values()):
            if lease.node is not None and lease.node.address.name == name and lease.state == "running":
                self._end(lease, LOST, f"The node {name} is lost")
        self.queue.ask_again()

    # Computers

    async def start(self, order: LeaseOrder, lease: ComputerLease) -> dict[str, Any]:
        """Until it runs. A node that is lost meanwhile is left for another one."""
        self.leases[lease.id] = lease
        try:
            while True:
                node = await self._find_room(lease)
                try:
                    return await self._start_on(node, lease)
                except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
                    _log.warning("A computer could not be started on %s: %s", node.address.name, error)
                except FreeholdError as error:
                    if error.code not in ("fleet.lost", "fleet.cut-short"):
                        raise
                await self._remove_there(node, lease)
                self.queue.free(lease.id)
                lease.state, lease.node = "waiting", None
        except BaseException:
            if lease.node is not None:
                self._group.create_task(self._remove_there(lease.node, lease))
            self.forget(lease)
            raise

    async def _find_room(self, lease: ComputerLease) -> NodeLink:
        order = lease.order
        self.queue.add(lease.id, order.room, order.priority, order.who, time.time())
        while True:
            name = await lease.placed.get()
            link = self.find_link(name)
            if link is None or self.explain_block(name):
                self.queue.refuse(lease.id, name)
            elif self.queue.settle(lease.id) is not None:
                return link

    async def _start_on(self, node: NodeLink, lease: ComputerLease) -> dict[str, Any]:
        order = lease.order
        lease.state, lease.node = "copying", node
        parts = order.spec.shown
        prepared = await node.ask("prepare", lease.id, spec=encode(order.spec))
        await self._shown.send(node, order.shown, parts, list(prepared["missing"]))
        await lease.fill(node)
        lease.state = "starting"
        found = await node.ask("start", lease.id)
        lease.pid = found["pid"]
        await lease.serve()
        lease.state, lease.saved_at = "running", asyncio.get_running_loop().time()
        return {"id": lease.id, "node": node.address.name, "isolation": found["isolation"], "pid": lease.pid}

    async def _remove_there(self, node: NodeLink, lease: ComputerLease) -> None:
        with contextlib.suppress(FreeholdError, TimeoutError):
            async with asyncio.timeout(5):
                await node.ask("stop", lease.id, grace=0)

    async def adopt(self, lease: ComputerLease, name: str) -> None:
        """A client that an earlier head had. Raises `computer.ended` when its computer is gone."""
        link = self.find_link(name)
        if link is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ADOPT_SECONDS):
                    await link.connected.wait()
        if link is None or not link.is_connected:
            raise FreeholdError("computer.ended", f"The node {name} is lost")
        await link.ask("usage", lease.id)
        lease.node, lease.state, lease.is_found_again = link, "running", True
        self.leases[lease.id] = lease
        self.queue.hold(lease.id, lease.order.who)
        self._ask_placer(lease.id, replace(lease.order.room, on=name))
        await lease.serve()

    async def stop(self, lease: ComputerLease, grace: float) -> int:
        """End it. Its last files are taken when there was time for it to end."""
        node = lease.get_node()
        if lease.state != "running":
            return LOST
        lease.state, why = "ended", ""
        try:
            found = await node.ask("stop", lease.id, grace=grace, keep=grace > 0)
            code = int(found["code"])
            if grace > 0:
                await lease.take()
                await node.ask("remove", lease.id)
        except (OSError, TimeoutError, FreeholdError, asyncio.IncompleteReadError) as error:
            _log.warning("A computer on %s ended without its last files: %s", node.address.name, error)
            code, why = LOST, f"The node {node.address.name} is lost"
        self._end(lease, code, why)
        return code

    def make_lease(self, order: LeaseOrder, listener: Any) -> ComputerLease:
        return ComputerLease(secrets.token_hex(16), order, listener)

    async def describe_shown(self, order: LeaseOrder, targets: list[str]) -> LeaseOrder:
        parts = await self._shown.describe(order.shown, targets)
        return replace(order, spec=replace(order.spec, shown=parts))

    async def abandon(self, lease: ComputerLease) -> None:
        """Its client is gone."""
        if lease.state in ("running", "ended") and lease.node is not None and lease.id in self.leases:
            await self._remove_there(lease.node, lease)
        self.forget(lease)

    def forget(self, lease: ComputerLease) -> None:
        """Idempotent."""
        lease.close()
        if self.leases.pop(lease.id, None) is not None:
            self.queue.free(lease.id)

    def _end(self, lease: ComputerLease, code: int, why: str = "") -> None:
        lease.tell({"notice": "ended", "code": code, "why": why})
        node = lease.node
        self.forget(lease)
        if node is not None and node.is_connected:
            self._group.create_task(self._remove_there(node, lease))

    async def _save_all(self) -> None:
        """At intervals: a node that is lost costs what was done since. One that is silent delays nobody else."""
        while True:
            await asyncio.sleep(min(1.0, self._save_every))
            now = asyncio.get_running_loop().time()
            for lease in self.leases.values():
                is_due = lease.state == "running" and now - lease.saved_at >= self._save_every
                if is_due and not lease.taking.locked():
                    lease.end_with(self._group.create_task(self._save(lease)))

    async def _save(self, lease: ComputerLease) -> None:
        try:
            await lease.take()
        except (OSError, TimeoutError, FreeholdError, asyncio.IncompleteReadError) as error:
            lease.saved_at = asyncio.get_running_loop().time()
            _log.warning("The files of a computer could not be taken: %s", error)

    # Room

    def take_placed(self, id: str, name: str) -> None:
        lease = self.leases.get(id)
        if lease is not None and lease.state == "waiting" and not lease.placed.full():
            lease.placed.put_nowait(name)

    def reserve_again(self, name: str) -> None:
        """Ray was started again on a node: what it had reserved there it may have moved to another one."""
        for lease in self.leases.values():
            if lease.node is not None and lease.node.address.name == name and lease.state == "running":
                self._withdraw(lease.id)
                self._ask_placer(lease.id, replace(lease.order.room, on=name))
        self.queue.ask_again()

    def list_reservations(self) -> dict[str, RoomRequest]:
        """What Ray must know after it was started: what runs, and who waits."""
        running = {
            lease.id: replace(lease.order.room, on=lease.node.address.name)
            for lease in self.leases.values()
            if lease.node is not None and lease.state != "waiting"
        }
        return {**running, **self.queue.list_asked()}

    def explain_first(self, most: int | None = None) -> list[tuple[RoomWish, str]]:
        """Who waits, in the order of their turns, and why. Only the first ones with `most`."""
        wishes = list(self.queue)[:most]
        if self.placer is None or not self.placer.is_ready:
            return [(wish, "Ray is starting") for wish in wishes]
        names = {name: self.known[name].labels for name in self.known if not self.explain_block(name)}
        return list(zip(wishes, self.queue.explain_all(wishes, self.placer.nodes, names), strict=True))

    def list_computers(self, name: str) -> list[ComputerLease]:
        """Those on a node."""
        return [one for one in self.leases.values() if one.node is not None and one.node.address.name == name]

    def find_hostname(self, id: str) -> str:
        lease = self.leases.get(id)
        return lease.order.spec.hostname if lease is not None else ""

    def _ask_placer(self, id: str, request: RoomRequest) -> None:
        if self.placer is not None:
            self.placer.place(id, request)

    def _withdraw(self, id: str) -> None:
        if self.placer is not None:
            self.placer.release(id)

    async def _tell_reasons(self) -> None:
        """Who waits is told why, when it waits longer than a moment."""
        told: dict[str, str] = {}
        while True:
            await asyncio.sleep(TELL_PAUSE)
            now: dict[str, str] = {}
            for wish, why in self.explain_first(MAX_TOLD):
                now[wish.id] = why
                lease = self.leases.get(wish.id)
                if lease is not None and told.get(wish.id) != why:
                    lease.tell({"waiting": why})
            told = now
