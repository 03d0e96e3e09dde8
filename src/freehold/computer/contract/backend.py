"""The narrow waist between the computer and what seals it: start, stop, and nothing about what goes on inside."""

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from freehold.computer.spec import ComputerSpec

Mechanism = Literal["cgroup v2", "cgroup v1", "rlimit", "watch", "tmpfs", "affinity", "guest"]


@dataclass(frozen=True)
class Isolation:
    """What really holds a computer, asked for by `status` and `doctor`.

    `uid` is the uid on the host that everything inside has. `limits` says by which mechanism each limit is held:
    "watch" is a host-side watcher that acts within a second, "affinity" can be undone by a program inside, and
    "guest" is enforced per command by whoever runs it.
    """

    backend: str
    version: str
    uid: int
    walls: tuple[str, ...]
    limits: Mapping[str, Mechanism]


@dataclass(frozen=True)
class Usage:
    """Now, against the limits. None is what the mechanism in force cannot tell.

    `out_of_memory` counts the processes ended for want of memory since the start, `refused_processes` those not
    started: compared before and after a command, they tell why it was ended.
    """

    memory: int | None = None
    memory_peak: int | None = None
    processes: int | None = None
    cpu_seconds: float | None = None
    disk: int | None = None
    inodes: int | None = None
    out_of_memory: int | None = None
    refused_processes: int | None = None


@dataclass(frozen=True)
class LimitEvent:
    """A limit is near (80 %) or was reached; `setting` is the manifest's name of it, `computer.limits.memory` for example."""

    kind: Literal["warning", "reached"]
    limit: str
    used: int
    allowed: int
    message: str

    @property
    def setting(self) -> str:
        return f"computer.limits.{self.limit}"


class Machine(Protocol):
    """A started computer. Everything in it dies with the process that started it, however that ends."""

    @property
    def pid(self) -> int:
        """The guest's pid as the host sees it."""
        ...

    @property
    def isolation(self) -> Isolation: ...

    async def wait(self) -> int:
        """Returns the exit status once the guest and everything it started are gone. May be awaited by many, and again."""
        ...

    async def stop(self, grace: float = 5.0) -> None:
        """SIGTERM to the guest, then after `grace` seconds the end of the whole tree. Idempotent."""
        ...

    def usage(self) -> Usage:
        """Reads the counters now. Events for limits found reached are delivered before this returns,

        so that whoever sees a process killed can ask here why.
        """
        ...

    def subscribe(self, callback: Callable[[LimitEvent], None]) -> Callable[[], None]:
        """Calls back in the loop that started the machine; returns the way to stop that."""
        ...


class Backend(Protocol):
    """One way to seal a computer. Refuses (`computer.no-isolation`) rather than start with a wall missing."""

    @property
    def name(self) -> str: ...

    async def start(self, spec: ComputerSpec, listener: socket.socket, guest: Path) -> Machine:
        """Runs the archive at GUEST_PATH with `/usr/bin/python3 -I -S -E` and `--listen FD --hold PORTS` as pid 1, with `listener` inherited as FD and nothing else.

        `guest` is the zipapp on the host, shown read-only inside. The guest owes the walls two things: it calls
        prctl(PR_SET_DUMPABLE, 0) before anything else, since programs inside share its uid and could otherwise write
        its memory through /proc/1/mem; and on SIGTERM it ends its children and exits.
        """
        ...
