"""What a machine reports about itself: how it is isolated, what it uses, which limits it met."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

LimitMechanism = Literal[
    "cgroup v2", "cgroup v1", "rlimit", "watch", "project quota", "tmpfs", "affinity", "guest", "virtual machine"
]


@dataclass(frozen=True)
class Isolation:
    """What isolates a computer in fact; shown by `status` and `doctor`.

    `runs_as` says in words what the computer is on the host, for example "uid 64242". `walls` are the
    walls that the backend has verified. `limits` names the mechanism that enforces each limit: "watch" is a watcher on
    the host that acts within a second, "project quota" adds the count of the file system to it, "affinity" can be undone by a program inside, "guest" is enforced by the
    guest for each command, and "virtual machine" by the computer's own kernel. A limit that is not listed is not enforced.
    """

    backend: str
    version: str
    runs_as: str
    walls: tuple[str, ...]
    limits: Mapping[str, LimitMechanism]


@dataclass(frozen=True)
class MachineUsage:
    """Use at this moment. None means that the backend cannot measure it.

    `out_of_memory` counts the processes killed for memory since the start, `refused_processes` those that could not
    start. Compare them before and after a command to learn why it was killed.
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
    """A limit is near (80 %) or was reached. `setting` is its name in the manifest, such as `computer.limits.memory`."""

    kind: Literal["warning", "reached"]
    limit: str
    used: int
    allowed: int
    message: str

    @property
    def setting(self) -> str:
        return f"computer.limits.{self.limit}"


@dataclass(frozen=True)
class SleepReport:
    """How a machine was put to sleep: "frozen" in memory, or "written to disk". Memory in bytes; None if unknown."""

    how: Literal["frozen", "written to disk"]
    memory_before: int | None
    memory_after: int | None

    @property
    def given_back(self) -> int:
        """Bytes of memory that the host can use for other things meanwhile."""
        if self.memory_before is None or self.memory_after is None:
            return 0
        return max(0, self.memory_before - self.memory_after)
