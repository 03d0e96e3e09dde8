"""Where packed computers go: on the fullest node that has room.

Ray packs what is in one placement group. Each computer has one of its own, and Ray gives each the emptiest node.
"""

from collections import Counter
from collections.abc import Mapping

from freehold.fleet.placer import NodeRoom, RoomRequest


class ReservedAmounts:
    """What this head has reserved on each node. What Ray says about it is a second old."""

    def __init__(self) -> None:
        self._cpus: Counter[str] = Counter()
        """In thousandths, so that nothing is left of fractions."""
        self._memory: Counter[str] = Counter()
        self._gpus: Counter[str] = Counter()

    def add(self, node: str, request: RoomRequest, sign: int) -> None:
        self._cpus[node] += sign * _thousandths(request.cpus)
        self._memory[node] += sign * request.memory
        self._gpus[node] += sign * request.gpus

    def find_share(self, node: str, room: NodeRoom) -> float:
        """Of its processors."""
        return self._cpus[node] / 1000 / room.cpus if room.cpus else 1.0

    def find_fullness(self, node: str, room: NodeRoom) -> float:
        """The share of what is scarcest there."""
        return max(self.find_share(node, room), self._memory[node] / room.memory if room.memory else 1.0)

    def leaves(self, node: str, room: NodeRoom, request: RoomRequest) -> bool:
        """Whether there is room for one more, by what is known here and by what Ray has said last."""
        return (
            _thousandths(room.cpus) - self._cpus[node] >= _thousandths(request.cpus)
            and room.memory - self._memory[node] >= request.memory
            and room.gpus - self._gpus[node] >= request.gpus
            and room.free_cpus >= request.cpus
            and room.free_memory >= request.memory
            and room.free_gpus >= request.gpus
        )


def choose_fullest(
    request: RoomRequest,
    rooms: Mapping[str, NodeRoom],
    reserved: ReservedAmounts,
    labels: Mapping[str, Mapping[str, str]],
) -> str:
    """Empty when no node has room now. `labels` are those of the nodes that may be chosen."""
    fitting = [
        name
        for name, room in rooms.items()
        if name in labels
        and name not in request.not_on
        and request.labels.items() <= labels[name].items()
        and reserved.leaves(name, room, request)
    ]
    return min(fitting, key=lambda name: (-reserved.find_fullness(name, rooms[name]), name), default="")


def _thousandths(cpus: float) -> int:
    return round(cpus * 1000)
