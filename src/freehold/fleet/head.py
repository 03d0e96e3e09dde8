"""The head of a fleet: finds room for computers, starts them on nodes, and brings their files back.

A computer belongs to the client that asked for it, by one connection. When the client goes, the computer ends. When the
head goes, clients and nodes wait for the next one, and find each other again.
"""

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, assert_never

from freehold.errors import FreeholdError
from freehold.fleet.certificates import FleetKey, pinned_context
from freehold.fleet.computer_lease import LOST, ComputerLease, LeaseOrder
from freehold.fleet.early_connection import EarlyConnection
from freehold.fleet.fleet_folder import KnownNode
from freehold.fleet.node_link import NodeAddress, NodeLink
from freehold.fleet.node_messages import (
    ComputerEnded,
    ComputerEvent,
    ComputerWords,
    NodeNotice,
    PreparedRoom,
    StartedThere,
    StoppedThere,
)
from freehold.fleet.placer import RayPlacer, RoomRequest
from freehold.fleet.room_queue import RoomQueue, RoomWish, can_hold
from freehold.fleet.shown_parts import ShownParts
from freehold.fleet.spare_rooms import SpareRooms
from freehold.fleet.start_attempts import StartAttempts
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
        self._rooms = SpareRooms(
            lambda: self.placer, self._take_room, lambda: {name: node.labels for name, node in self.known.items()}
        )
        self.queue = RoomQueue(self._rooms.ask, self._withdraw, quota, self.list_blocked)

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
        self._rooms.forget_ray()
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

    def _take_found(self, name: str, computers: Collection[str], ended: Mapping[str, int]) -> None:
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

    def _take_notice(self, name: str, notice: NodeNotice) -> None:
        lease = self.leases.get(notice.computer)
        if lease is None or lease.node is None or lease.node.address.name != name:
            return
        match notice:
            case ComputerEnded(code=code):
                if lease.state == "running":
                    self._end(lease, code)
            case ComputerWords(words=words):
                lease.tell({"notice": "words", "words": words})
            case ComputerEvent(event=event):
                lease.tell({"notice": "event", "event": encode(event)})
            case other:
                assert_never(other)

    def _lose_node(self, name: str) -> None:
        for lease in list(self.leases.values()):
            if lease.node is not None and lease.node.address.name == name and lease.state == "running":
                self._end(lease, LOST, f"The node {name} is lost")
        self.queue.ask_again()

    # Computers

    async def start(self, order: LeaseOrder, lease: ComputerLease) -> dict[str, Any]:
        """Until it runs. A node that is lost meanwhile, or cannot start it, is left for another one."""
        self.leases[lease.id] = lease
        attempts = StartAttempts()
        try:
            while True:
                node = await self._find_room(lease, attempts.avoided)
                found = await self._try_on(node, lease)
                if not isinstance(found, FreeholdError):
                    return found
                attempts.note(found, node.address.name, is_lost=not node.is_connected)
                await self._leave(node, lease)
                if not self._has_another(lease.order.room, attempts.avoided):
                    attempts.avoided.clear()
                _log.warning("A computer is tried again: %s", found.message)
                await asyncio.sleep(attempts.pause)
        except BaseException:
            self._give_away(lease, is_left=lease.node is not None)
            raise

    async def _try_on(self, node: NodeLink, lease: ComputerLease) -> dict[str, Any] | FreeholdError:
        try:
            return await self._start_on(node, lease)
        except FreeholdError as error:
            return error
        except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
            why = f"It could not be started on {node.address.name}: {_explain(error)}"
            return FreeholdError("fleet.failed", why, hint="The log of the node may say more")

    async def _leave(self, node: NodeLink, lease: ComputerLease) -> None:
        """Nothing of it stays on a node that did not start it."""
        if lease.early is not None:
            lease.early.close()
        await self._remove_there(node, lease)
        self.queue.free(lease.id)
        lease.state, lease.node = "waiting", None

    def _has_another(self, room: RoomRequest, avoided: set[str]) -> bool:
        """Whether a node that is not avoided could hold it."""
        rooms = self.placer.nodes if self.placer is not None else {}
        names = {name: self.known[name].labels for name in self.known.keys() - avoided if not self.explain_block(name)}
        return can_hold(room, rooms, names)

    async def _find_room(self, lease: ComputerLease, avoided: Collection[str] = ()) -> NodeLink:
        order = lease.order
        self.queue.add(lease.id, order.room, order.priority, order.who, time.time(), avoided)
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
        states = await lease.read_folders()
        prepare: dict[str, Any] = {"do": "prepare", "spec": encode(order.spec)}
        if not parts and not any(state.entries for state in states.values()):
            starting = {**prepare, "start": True}  # nothing is sent between the two: one round trip
        else:
            prepared = await node.ask_for(PreparedRoom, **prepare, computer=lease.id)
            await self._shown.send(node, order.shown, parts, prepared.missing)
            await lease.fill(node, states)
            starting = {"do": "start"}
        lease.state = "starting"
        lease.early = EarlyConnection(node)
        found = await node.ask_for(StartedThere, **starting, computer=lease.id)
        lease.pid = found.pid
        await lease.serve()
        lease.state, lease.saved_at = "running", asyncio.get_running_loop().time()
        return {"id": lease.id, "node": node.address.name, "isolation": encode(found.isolation), "pid": lease.pid}

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
        self._rooms.ask(lease.id, replace(lease.order.room, on=name))
        await lease.serve()

    async def stop(self, lease: ComputerLease, grace: float) -> int:
        """End it. Its last files are taken when there was time for it to end."""
        node = lease.get_node()
        if lease.state != "running":
            return LOST
        lease.state, why, is_removed = "ended", "", False
        try:
            code = (await node.ask_for(StoppedThere, "stop", lease.id, grace=grace, keep=grace > 0)).code
            if grace > 0:
                await lease.take()
                await node.ask("remove", lease.id)
            is_removed = True
        except (OSError, TimeoutError, FreeholdError, asyncio.IncompleteReadError) as error:
            _log.warning("A computer on %s ended without its last files: %s", node.address.name, error)
            is_lost = not node.is_connected or getattr(error, "code", "") == "fleet.lost"
            why = (
                f"The node {node.address.name} is lost"
                if is_lost
                else f"Its last files did not come back: {_explain(error)}"
            )
            code = LOST
        self._end(lease, code, why, is_removed=is_removed)
        return code

    def make_lease(self, order: LeaseOrder, listener: Any) -> ComputerLease:
        return ComputerLease(secrets.token_hex(16), order, listener)

    async def describe_shown(self, order: LeaseOrder, targets: list[str]) -> LeaseOrder:
        try:
            parts = await self._shown.describe(order.shown, targets)
        except OSError as error:
            raise FreeholdError(
                "computer.mount-missing", f"{error.filename} cannot be read: {error.strerror}"
            ) from error
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

    def _end(self, lease: ComputerLease, code: int, why: str = "", *, is_removed: bool = False) -> None:
        """`why` it was lost, if it was. `is_removed`: nothing of it is left on its node."""
        lease.tell({"notice": "ended", "code": code, "why": why})
        node = lease.node
        is_left = node is not None and node.is_connected and not is_removed
        self._give_away(lease, is_left=is_left, is_spare=not why)

    def _give_away(self, lease: ComputerLease, *, is_left: bool, is_spare: bool = False) -> None:
        """Its room, and what is left of it on its node. A card is free there first: the next one gets it at once."""
        node = lease.node if is_left else None
        if node is not None and lease.order.room.gpus:
            lease.close()
            self._group.create_task(self._remove_and_free(node, lease, is_spare))
            return
        self._free(lease, is_spare)
        if node is not None:
            self._group.create_task(self._remove_there(node, lease))

    async def _remove_and_free(self, node: NodeLink, lease: ComputerLease, is_spare: bool) -> None:
        await self._remove_there(node, lease)
        self._free(lease, is_spare)

    def _free(self, lease: ComputerLease, is_spare: bool) -> None:
        if is_spare and not self.queue:
            self._rooms.spare(lease.id)
        self.forget(lease)

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
        """Ray has found room."""
        self._rooms.take_placed(id, name)
        self._take_room(id, name)

    def _take_room(self, id: str, name: str) -> None:
        lease = self.leases.get(id)
        if lease is not None and lease.state == "waiting" and not lease.placed.full():
            lease.placed.put_nowait(name)

    def reserve_again(self, name: str) -> None:
        """Ray was started again on a node: what it had reserved there it may have moved to another one."""
        self._rooms.leave_node(name)
        for lease in self.leases.values():
            if lease.node is not None and lease.node.address.name == name and lease.state == "running":
                self._withdraw(lease.id)
                self._rooms.ask(lease.id, replace(lease.order.room, on=name))
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

    def _withdraw(self, id: str) -> None:
        """Also the room that Ray has named, and nobody has taken yet."""
        lease = self.leases.get(id)
        while lease is not None and not lease.placed.empty():
            lease.placed.get_nowait()
        self._rooms.release(id)

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


def _explain(error: Exception) -> str:
    if isinstance(error, asyncio.IncompleteReadError | TimeoutError):
        return "the node has ended the connection, or is silent"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
