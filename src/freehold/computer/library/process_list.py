"""The processes inside, and what the computer uses."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from freehold.computer.contract.spec import Limits
from freehold.computer.library.frames import protocol_error


class RunningProcess(NamedTuple):
    """A process inside. `leader` says that the host started it, not another process."""

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
class ProcessNode:
    """A process and its children."""

    process: RunningProcess
    children: "list[ProcessNode]" = field(default_factory=list)


@dataclass(frozen=True)
class ComputerStats:
    """Use and limits. None means unknown, such as the disk use of a computer that another process started."""

    cpu_seconds: float | None
    memory: int | None
    processes: int | None
    disk: int | None
    inodes: int | None
    limits: Limits

    def share(self, name: str) -> float | None:
        """The used share of a limit, from 0 to 1."""
        used, limit = getattr(self, name), getattr(self.limits, name)
        return used / limit if used is not None and limit else None


def read_running_process(row: Any) -> RunningProcess:
    kinds = (int, int, int, str, str, float, int, int, float, list, bool)
    if type(row) is list and tuple(map(type, row)) == kinds and all(type(part) is str for part in row[9]):
        return RunningProcess._make(row)
    raise protocol_error("a malformed process entry")


def read_socket_owner(row: Any) -> tuple[int, int]:
    if type(row) is list and tuple(map(type, row)) == (int, int):
        return row[0], row[1]
    raise protocol_error("a malformed owner of a socket")


def build_process_tree(running: list[RunningProcess]) -> list[ProcessNode]:
    """Build the trees. A process whose parent is not in the list is a root."""
    nodes = {process.pid: ProcessNode(process) for process in running}
    top = []
    for node in nodes.values():
        parent = nodes.get(node.process.parent)
        if parent is None or parent is node:
            top.append(node)
        else:
            parent.children.append(node)
    return top
