"""What a fleet is doing, as it is shown."""

from dataclasses import dataclass
from typing import Literal

from freehold.strict_json import EpochSeconds


@dataclass(frozen=True)
class NodeRow:
    """`state`: "away" says in `trouble` why it gets no computers; "draining" is the owner's wish."""

    name: str
    address: str
    state: Literal["ready", "draining", "away"]
    trouble: str
    labels: dict[str, str]
    computers: int
    cpus: float
    free_cpus: float
    memory: int
    free_memory: int
    gpus: int = 0
    free_gpus: int = 0


@dataclass(frozen=True)
class ComputerRow:
    """A computer that has room. `who` it belongs to: the owner or a session."""

    id: str
    who: str
    name: str
    node: str
    state: Literal["waiting", "copying", "starting", "running", "ended"]
    cpus: float
    memory: int
    gpus: int = 0


@dataclass(frozen=True)
class WaitRow:
    """A computer that waits for room, and why."""

    id: str
    who: str
    name: str
    priority: int
    since: EpochSeconds
    reason: str


@dataclass(frozen=True)
class MachineRow:
    """A machine that the autoscaler has started. `name` is that of its node."""

    name: str
    kind: str
    state: Literal["starting", "joined", "stopping"]
    trouble: str


@dataclass(frozen=True)
class FleetStatus:
    is_ready: bool
    """Whether Ray can find room now. Computers that run do not need it."""
    nodes: tuple[NodeRow, ...]
    computers: tuple[ComputerRow, ...]
    waiting: tuple[WaitRow, ...]
    computer_count: int
    waiting_count: int
    """How many there are, when not all of them are listed."""
    machines: tuple[MachineRow, ...] = ()
    trouble: str = ""
    """Why no machine can be started now."""
