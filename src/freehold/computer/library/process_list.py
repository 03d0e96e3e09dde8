"""Who runs inside, and what they use against their limits."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from freehold.computer.frames import protocol_error
from freehold.computer.spec import Limits


class Running(NamedTuple):
    """A process inside. `leader` tells that it was started from here rather than by another process."""

    pid: int
    parent: int
    session: int
    name: str
    state: str
    cpu: float
    memory: int
    threads: int
    started: float
    command: list[str]
    leader: bool


@dataclass
class Node:
    """A process with what it started."""

    process: Running
    children: "list[Node]" = field(default_factory=list)


@dataclass(frozen=True)
class Stats:
    """Use against limits. None is what cannot be told: the disk, for a computer that somebody else started."""

    cpu_seconds: float | None
    memory: int | None
    processes: int | None
    disk: int | None
    inodes: int | None
    limits: Limits

    def share(self, name: str) -> float | None:
        """How much of a limit is used, from 0 to 1."""
        used, limit = getattr(self, name), getattr(self.limits, name)
        return used / limit if used is not None and limit else None


def read_running(row: Any) -> Running:
    kinds = (int, int, int, str, str, float, int, int, float, list, bool)
    if type(row) is list and tuple(map(type, row)) == kinds and all(type(part) is str for part in row[9]):
        return Running._make(row)
    raise protocol_error("a process that is none")


def read_holder(row: Any) -> tuple[int, int]:
    if type(row) is list and tuple(map(type, row)) == (int, int):
        return row[0], row[1]
    raise protocol_error("the holder of a socket that is none")


def make_tree(running: list[Running]) -> list[Node]:
    """Processes whose parent is not among them are at the top."""
    nodes = {process.pid: Node(process) for process in running}
    top = []
    for node in nodes.values():
        parent = nodes.get(node.process.parent)
        if parent is None or parent is node:
            top.append(node)
        else:
            parent.children.append(node)
    return top
