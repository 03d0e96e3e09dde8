"""Who waits for room, in which order, and why.

The first few that wait are known to Ray, so that its autoscaler sees what is needed. One of higher priority takes the
turn of those that have no room yet.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from freehold.fleet.placer import NodeRoom, RoomRequest

FULL = "All nodes are full"
SESSION = "session:"
"""How the name of those begins who have a quota. What the owner starts has none."""
WINDOW = 16
"""How many requests Ray knows of at a time. Smaller ones among them may overtake larger ones."""


@dataclass
class RoomWish:
    """One computer that waits. `order` is its place among those of the same priority."""

    id: str
    request: RoomRequest
    priority: int
    who: str
    order: int
    since: float
    is_asked: bool = False
    avoided: set[str] = field(default_factory=set)

    @property
    def turn(self) -> tuple[int, int, str]:
        """Who has the smallest is next."""
        return -self.priority, self.order, self.id


class RoomQueue:
    """`ask` and `withdraw` are requests to Ray; `blocked` are nodes that get no computers now."""

    def __init__(
        self,
        ask: Callable[[str, RoomRequest], None],
        withdraw: Callable[[str], None],
        quota: int,
        blocked: Callable[[], set[str]],
    ) -> None:
        self._ask = ask
        self._withdraw = withdraw
        self._quota = quota
        self._blocked = blocked
        self._wishes: dict[str, RoomWish] = {}
        self._turns: list[tuple[int, int, str]] = []
        self._asked: dict[str, RoomWish] = {}
        self._holders: dict[str, str] = {}
        self._held: Counter[str] = Counter()
        self._count = 0

    def __len__(self) -> int:
        return len(self._wishes)

    def __iter__(self) -> Iterator[RoomWish]:
        return (self._wishes[id] for _, _, id in self._turns)

    def add(
        self, id: str, request: RoomRequest, priority: int, who: str, now: float, avoided: Collection[str] = ()
    ) -> RoomWish:
        """`avoided` are nodes that it has been on and should not be on again, until nodes come or go."""
        self._count += 1
        wish = self._wishes[id] = RoomWish(id, request, priority, who, self._count, now, avoided=set(avoided))
        insort(self._turns, wish.turn)
        self._advance()
        return wish

    def settle(self, id: str) -> RoomWish | None:
        """It has room now, and counts for the quota of its session until `free`. None when nobody waits for it."""
        wish = self._take_out(id)
        if wish is not None:
            self.hold(id, wish.who)
            self._advance()
        return wish

    def hold(self, id: str, who: str) -> None:
        """It runs already: it was found again after a restart."""
        self._holders[id] = who
        self._held[who] += 1

    def free(self, id: str) -> None:
        """Idempotent. Its room is given back, or it waits no longer."""
        wish = self._take_out(id)
        who = self._holders.pop(id, None)
        if who is not None:
            self._held[who] -= 1
        if who is not None or (wish is not None and wish.is_asked):
            self._withdraw(id)
        self._advance()

    def refuse(self, id: str, node: str) -> None:
        """The node that Ray has chosen cannot be used: ask again, and not for that one."""
        wish = self._wishes.get(id)
        if wish is not None and wish.is_asked:
            wish.avoided.add(node)
            self._take_back(wish)
            self._advance()

    def ask_again(self) -> None:
        """Ray has forgotten everything, or other nodes may be used now."""
        for wish in list(self._asked.values()):
            self._take_back(wish)
        for wish in self._wishes.values():
            wish.avoided.clear()
        self._advance()

    def list_asked(self) -> Mapping[str, RoomRequest]:
        return {id: self._complete(wish) for id, wish in self._asked.items()}

    def explain_all(
        self, wishes: Iterable[RoomWish], nodes: Mapping[str, NodeRoom], names: Mapping[str, Mapping[str, str]]
    ) -> list[str]:
        """Why each waits, for its owner. `names` are the nodes that get computers, with their labels."""
        known: dict[object, str] = {}  # many that wait want the same
        found = []
        for wish in wishes:
            request = wish.request
            wanted = (
                tuple(request.labels.items()),
                request.cpus,
                request.memory,
                request.gpus,
                frozenset(wish.avoided),
            )
            if wanted not in known:
                usable = [
                    room
                    for name, room in nodes.items()
                    if name not in wish.avoided and _has_labels(names.get(name), request.labels)
                ]
                known[wanted] = _explain_room(request, usable)
            found.append(self._explain(wish, known[wanted]))
        return found

    def _explain(self, wish: RoomWish, words: str) -> str:
        if self._is_used_up(wish.who):
            return f"{wish.who} has {self._quota} computers already, which is its share (fleet.max_per_session)"
        ahead = bisect_left(self._turns, wish.turn) if words.startswith(FULL) else 0
        return f"{words}; {ahead} wait before it" if ahead else words

    def _is_used_up(self, who: str, more: int = 0) -> bool:
        return self._quota > 0 and who.startswith(SESSION) and self._held[who] + more >= self._quota

    def _take_out(self, id: str) -> RoomWish | None:
        wish = self._wishes.pop(id, None)
        if wish is not None:
            self._asked.pop(id, None)
            del self._turns[bisect_left(self._turns, wish.turn)]
        return wish

    def _take_back(self, wish: RoomWish) -> None:
        self._withdraw(wish.id)
        wish.is_asked = False
        del self._asked[wish.id]

    def _advance(self) -> None:
        """Ray knows the first ones, and no others."""
        first = self._choose_first()
        newest = max((wish.priority for wish in first.values() if not wish.is_asked), default=None)
        for wish in list(self._asked.values()):
            if wish.id not in first or (newest is not None and wish.priority < newest):
                self._take_back(wish)
        for wish in first.values():
            if not wish.is_asked:
                wish.is_asked = True
                self._asked[wish.id] = wish
                self._ask(wish.id, self._complete(wish))

    def _complete(self, wish: RoomWish) -> RoomRequest:
        return replace(wish.request, not_on=tuple(sorted(self._blocked() | wish.avoided)))

    def _choose_first(self) -> dict[str, RoomWish]:
        more: Counter[str] = Counter()
        chosen: dict[str, RoomWish] = {}
        for wish in self:
            if len(chosen) == WINDOW:
                break
            if not self._is_used_up(wish.who, more[wish.who]):
                more[wish.who] += 1
                chosen[wish.id] = wish
        return chosen


def can_hold(request: RoomRequest, rooms: Mapping[str, NodeRoom], names: Mapping[str, Mapping[str, str]]) -> bool:
    """Whether one of the nodes `names`, with their labels, has as much, free or not."""
    return any(
        _is_enough(room, request) and _has_labels(names.get(name), request.labels) for name, room in rooms.items()
    )


def _explain_room(request: RoomRequest, usable: list[NodeRoom]) -> str:
    if not usable:
        wanted = ", ".join(f"{name}={value}" for name, value in request.labels.items())
        return f"No node with {wanted} is connected" if wanted else "No node is connected"
    needs = _describe_needs(request)
    if not any(_is_enough(room, request) for room in usable):
        return f"No node has {needs}"
    return f"{FULL}: {needs} are not free"


def _describe_needs(request: RoomRequest) -> str:
    gpus = f", {request.gpus} GPU" + ("s" if request.gpus > 1 else "") if request.gpus else ""
    return f"{request.cpus:g} processors{gpus} and {request.memory // 2**20} MiB of memory"


def _is_enough(room: NodeRoom, request: RoomRequest) -> bool:
    return room.cpus >= request.cpus and room.memory >= request.memory and room.gpus >= request.gpus


def _has_labels(found: Mapping[str, str] | None, wanted: Mapping[str, str]) -> bool:
    return found is not None and all(found.get(name) == value for name, value in wanted.items())
