"""The processes inside, and what the computer uses."""

import unicodedata
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from freehold.computer.contract.spec import Limits
from freehold.computer.library import reply
from freehold.computer.library.frames import protocol_error

MAX_SHOWN_COMMAND = 80
"""Characters of the command of a process in a sentence."""
MAX_SIZE = 2**63
"""No computer has so many bytes. A larger number of a guest is refused: it is no float, and nothing can show it."""


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


@dataclass(frozen=True)
class MemoryUse:
    """Bytes now: of each process that was asked about together with what descends from it, and of everything else.

    Shared pages are divided among those who share them. Temporary files count as memory, as for the limit.
    """

    trees: dict[int, int]
    other: int


class ListeningSocket(NamedTuple):
    """A TCP socket that listens. `address` is hexadecimal, as in /proc/net/tcp."""

    address: str
    port: int
    inode: int


class RemainingProcess(NamedTuple):
    """A process that still runs after all sessions were ended. `state` is that of the kernel, such as "D" or "S"."""

    pid: int
    command: str
    state: str


@dataclass(frozen=True)
class EndedSessions:
    """What ending all sessions did: `ended` processes of agents are gone.

    `left` are processes of agents that were killed and do not go, because the kernel waits for a device. `kept` counts
    the processes of the owner. Those of them that no terminal, service or command holds any more are `detached`: the
    owner may have started them, or a file that an agent wrote and the owner's shell ran.
    """

    ended: int
    left: tuple[RemainingProcess, ...]
    kept: int
    detached: tuple[RemainingProcess, ...]

    def describe(self) -> str:
        """In words: what was ended, what was not, and what was left alone."""
        killed = f" ({_count(self.ended, 'process')} killed)" if self.ended else ""
        words = [f"No process of an agent runs any more{killed}."]
        if self.detached:
            words = [f"Every process that an agent started has ended{killed}."]
        if self.left:
            words = [f"Killed, but waiting for a device and not gone yet: {_name_all(self.left)}{killed}."]
        if self.kept:
            words.append(f"Your own terminals, services and commands keep running ({_count(self.kept, 'process')}).")
        if self.detached:
            words.append(
                f"No terminal, service or command holds these any more: {_name_all(self.detached)}. If you did not start "
                "them, a file that an agent wrote may have, such as ~/.bash_profile when you opened a terminal "
                f"(freehold run /bin/kill -9 {self.detached[0].pid} ends the first)."
            )
        return " ".join(words)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}es"


def _name_all(processes: tuple[RemainingProcess, ...]) -> str:
    """In quotes that nothing inside can end: the program chooses its own name, and could continue our sentence."""
    return ", ".join(f'{one.pid} ("{_quotable(one.command)}")' for one in processes)


def _quotable(command: str) -> str:
    """Without quotes of any script, and short."""
    plain = "".join("'" if char == '"' or unicodedata.category(char) in ("Pi", "Pf") else char for char in command)
    return plain if len(plain) <= MAX_SHOWN_COMMAND else f"{plain[:MAX_SHOWN_COMMAND]}…"


def read_ended_sessions(answer: Any) -> EndedSessions:
    if not isinstance(answer, dict):
        raise protocol_error("the reply about ended sessions is not an object")
    left, detached = (
        tuple(map(_read_remaining, reply.read_list(answer, name, most=100))) for name in ("left", "detached")
    )
    return EndedSessions(reply.read_int(answer, "ended"), left, reply.read_int(answer, "kept"), detached)


def _read_remaining(row: Any) -> RemainingProcess:
    if type(row) is list and tuple(map(type, row)) == (int, str, str):
        return RemainingProcess(row[0], reply.escape_unprintable(row[1][:200]), row[2][:1])
    raise protocol_error("a malformed remaining process")


def read_running_process(row: Any) -> RunningProcess:
    kinds = (int, int, int, str, str, float, int, int, float, list, bool)
    is_well_formed = type(row) is list and tuple(map(type, row)) == kinds and all(type(part) is str for part in row[9])
    if is_well_formed and all(_is_in_range(value) for value in row if type(value) in (int, float)):
        return RunningProcess._make(row)
    raise protocol_error("a malformed process entry")


def _is_in_range(value: float) -> bool:
    return -MAX_SIZE <= value <= MAX_SIZE  # false for NaN


def read_listening_socket(row: Any) -> ListeningSocket:
    if type(row) is list and tuple(map(type, row)) == (str, int, int) and all(0 <= one < MAX_SIZE for one in row[1:]):
        return ListeningSocket._make(row)
    raise protocol_error("a malformed listening socket")


def read_socket_owner(row: Any) -> tuple[int, int]:
    if type(row) is list and tuple(map(type, row)) == (int, int):
        return row[0], row[1]
    raise protocol_error("a malformed owner of a socket")


def read_memory_use(leaders: Collection[int], rows: list[Any]) -> MemoryUse:
    trees, other = dict.fromkeys(leaders, 0), 0
    for row in rows:
        if type(row) is not list or tuple(map(type, row)) != (int, int) or not 0 <= row[1] <= MAX_SIZE:
            raise protocol_error("a malformed size of a process")
        if row[0] in trees:
            trees[row[0]] += row[1]
        else:
            other += row[1]
    if other + sum(trees.values()) > MAX_SIZE:
        raise protocol_error("processes that are larger than any memory")
    return MemoryUse(trees, other)


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
