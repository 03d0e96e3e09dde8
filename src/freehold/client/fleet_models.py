"""The replies about a fleet as frozen objects."""

from datetime import datetime

from freehold.client.models import ApiModel


class FleetNodeInfo(ApiModel):
    """A machine that has joined: `ready`, `draining` or `away`. Memory is in bytes."""

    name: str
    address: str
    state: str
    trouble: str
    labels: dict[str, str]
    computers: int
    cpus: float
    free_cpus: float
    memory: int
    free_memory: int
    gpus: int
    free_gpus: int


class FleetComputerInfo(ApiModel):
    """A computer on a node. `session` is the one whose agent works in it."""

    id: str
    name: str
    who: str
    session: str | None
    node: str
    state: str
    cpus: float
    memory: int
    gpus: int


class FleetWaitInfo(ApiModel):
    """A computer that waits for room, and why."""

    id: str
    name: str
    who: str
    session: str | None
    priority: int
    since: datetime
    reason: str


class FleetMachineInfo(ApiModel):
    """A machine that the autoscaler has started: `starting`, `joined` or `stopping`. Its name is that of its node."""

    name: str
    kind: str
    state: str
    trouble: str


class FleetInfo(ApiModel):
    """What the fleet is doing. Computers and those that wait are the first 500; the counts are of all. `trouble` says why
    no machine can be started now."""

    enabled: bool
    ready: bool
    nodes: tuple[FleetNodeInfo, ...]
    computers: tuple[FleetComputerInfo, ...]
    waiting: tuple[FleetWaitInfo, ...]
    computer_count: int
    waiting_count: int
    machines: tuple[FleetMachineInfo, ...]
    trouble: str


class ChangedNode(ApiModel):
    """`computers` are on it; of a node that was removed they are lost."""

    name: str
    computers: int
