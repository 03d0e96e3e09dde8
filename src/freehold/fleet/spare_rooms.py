"""What Ray has reserved for a computer that has ended, for a moment: the next one that wants the same gets it.

Ray needs more processor time for a reservation than a node needs to start the computer. Only the number is used again:
a computer is always a new one.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from freehold.fleet.packed_rooms import ReservedAmounts, choose_fullest
from freehold.fleet.placer import RayPlacer, RoomRequest

SPARE_SECONDS = 2.0


@dataclass
class HeldRoom:
    """`reservation` is its name at Ray. `node` is empty until Ray has answered."""

    request: RoomRequest
    reservation: str
    node: str = ""


@dataclass(frozen=True)
class SpareRoom:
    request: RoomRequest
    reservation: str
    node: str
    expiry: asyncio.TimerHandle


class SpareRooms:
    """Between the queue and Ray. `on_placed` gets the id of a request and the name of a node, `find_labels` gives those
    of all nodes."""

    def __init__(
        self,
        find_placer: Callable[[], RayPlacer | None],
        on_placed: Callable[[str, str], None],
        find_labels: Callable[[], Mapping[str, Mapping[str, str]]],
    ) -> None:
        self._find_placer = find_placer
        self._on_placed = on_placed
        self._find_labels = find_labels
        self._held: dict[str, HeldRoom] = {}
        self._reserved = ReservedAmounts()
        self._spare: dict[str, SpareRoom] = {}

    def ask(self, id: str, request: RoomRequest) -> None:
        """Whoever wants something else than what is spare gets all of it back to Ray first."""
        placer = self._find_placer()
        found = self._choose(placer, request) if placer is not None and placer.is_ready else None
        if found is not None:
            del self._spare[found.reservation]
            found.expiry.cancel()
            self._held[id] = HeldRoom(request, found.reservation)
            self.take_placed(id, found.node)
            self._on_placed(id, found.node)
            return
        held = self._held[id] = HeldRoom(request, id)
        for spare in list(self._spare.values()):
            self._give_back(spare)
        if placer is None:
            return
        if request.strategy == "PACK" and not request.on:
            held.node = choose_fullest(request, placer.nodes, self._reserved, self._find_labels())
            self._count(held, 1)  # the next one is asked for before Ray has answered
            request = replace(request, on=held.node)
        placer.place(id, request)

    def take_placed(self, id: str, node: str) -> None:
        """Ray has answered."""
        held = self._held.get(id)
        if held is not None:
            self._count(held, -1)
            held.node = node
            self._count(held, 1)

    def release(self, id: str) -> None:
        """Idempotent."""
        held = self._held.pop(id, None)
        if held is not None:
            self._count(held, -1)
            self._release(held.reservation)

    def spare(self, id: str) -> None:
        """Its computer has ended as it should, and nobody waits for room."""
        held = self._held.get(id)
        if held is None or not held.node or held.request.strategy != "SPREAD":
            return  # packed computers belong on the fullest node
        del self._held[id]
        self._count(held, -1)
        self._spare[held.reservation] = SpareRoom(
            replace(held.request, on="", not_on=()),
            held.reservation,
            held.node,
            asyncio.get_running_loop().call_later(SPARE_SECONDS, self._expire, held.reservation),
        )

    def leave_node(self, name: str) -> None:
        """Ray was started again there: what is spare on it may have been moved."""
        for spare in [one for one in self._spare.values() if one.node == name]:
            self._give_back(spare)

    def forget_ray(self) -> None:
        """Ray was started again, and knows no reservation. Those of computers are made again, by their ids, and count
        when it has answered."""
        for spare in self._spare.values():
            spare.expiry.cancel()
        self._spare.clear()
        for id, held in self._held.items():
            self._count(held, -1)
            held.reservation, held.node = id, ""

    def _choose(self, placer: RayPlacer, request: RoomRequest) -> SpareRoom | None:
        """One that fits, on a node that is no fuller than others: a new node gets its share of the work."""
        wanted = replace(request, on="", not_on=())
        for spare in self._spare.values():
            if spare.request != wanted or spare.node in request.not_on or request.on not in ("", spare.node):
                continue
            used = {
                name: self._reserved.find_share(name, room)
                for name, room in placer.nodes.items()
                if room.cpus and name not in request.not_on
            }
            if spare.node in used and used[spare.node] <= min(used.values()):
                return spare
        return None

    def _expire(self, reservation: str) -> None:
        spare = self._spare.get(reservation)
        if spare is not None:
            self._give_back(spare)

    def _give_back(self, spare: SpareRoom) -> None:
        del self._spare[spare.reservation]
        spare.expiry.cancel()
        self._release(spare.reservation)

    def _release(self, reservation: str) -> None:
        placer = self._find_placer()
        if placer is not None:
            placer.release(reservation)

    def _count(self, held: HeldRoom, sign: int) -> None:
        if held.node:
            self._reserved.add(held.node, held.request, sign)
