"""The processes of a computer, seen and controlled from the host."""

import contextlib
import os
import resource
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from freehold.computer.walls.cgroups import Cgroup
from freehold.computer.walls.credentials import call_as_uid


class FileHolders(Protocol):
    """Processes of the host that keep files of a computer open or in memory."""

    @property
    def uid(self) -> int: ...

    def list_pids(self) -> list[int]: ...


class WriteControl(FileHolders, Protocol):
    """How the writes of a computer are stopped when its disk limit is reached."""

    def hold_writes(self) -> None: ...

    def release_writes(self) -> None: ...

    def kill_all_but_guest(self) -> int: ...


@dataclass(frozen=True)
class ComputerProcesses:
    """Every process of one computer: the members of its cgroup, or without one the descendants of its pid 1.

    Orphans inside become children of pid 1, so the descendants are complete.
    """

    guest: int
    uid: int
    cgroup: Cgroup | None
    file_size: int

    def list_pids(self) -> list[int]:
        if self.cgroup is not None:
            with contextlib.suppress(OSError):
                # The group also contains bubblewrap itself, which is outside and in one pid namespace less.
                depth = _count_pid_namespaces(self.guest)
                return [pid for pid in self.cgroup.processes() if _count_pid_namespaces(pid) == depth]
        return list(_descendants(self.guest))

    def hold_writes(self) -> None:
        """Let no file grow; deleting stays possible. New processes inherit this."""
        self._set_file_size(0)

    def release_writes(self) -> None:
        self._set_file_size(self.file_size)

    def _set_file_size(self, size: int) -> None:
        """Set the soft limit only, because root in a container cannot raise a hard limit again. The watcher repeats it."""

        def set_all() -> None:
            for pid in self.list_pids():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, self.file_size))

        with self._frozen():
            call_as_uid(self.uid, set_all)

    def kill_all_but_guest(self) -> int:
        """Kill every process except pid 1. Returns their number."""
        killed = 0
        with self._frozen():
            for pid in self.list_pids():
                if pid != self.guest:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                        killed += 1
        return killed

    @contextlib.contextmanager
    def _frozen(self) -> Iterator[None]:
        """Freeze the cgroup, so that nothing forks. Without one, the next round finds processes that were missed."""
        frozen = self.cgroup is not None and self.cgroup.freeze(True)
        try:
            yield
        finally:
            if frozen and self.cgroup is not None:
                self.cgroup.freeze(False)

    def kill_largest(self) -> int | None:
        """Kill the process with the most memory, as the kernel would; never pid 1."""
        sizes = {pid: read_private_memory(pid) for pid in self.list_pids() if pid != self.guest}
        if not sizes:
            return None
        largest = max(sizes, key=lambda pid: sizes[pid])
        with contextlib.suppress(ProcessLookupError):
            os.kill(largest, signal.SIGKILL)
        return largest

    def measure_memory(self) -> int:
        return sum(read_private_memory(pid) for pid in self.list_pids())

    def count_threads(self) -> int:
        """Processes and threads, as the kernel's limit counts them."""
        return sum(_status_number(pid, "Threads:") for pid in self.list_pids())


def read_private_memory(pid: int) -> int:
    """Memory of the process itself, without shared code, in bytes."""
    return (_status_number(pid, "RssAnon:") + _status_number(pid, "RssShmem:")) * 1024


def _status_number(pid: int, name: str) -> int:
    with contextlib.suppress(OSError), Path(f"/proc/{pid}/status").open() as status:
        for line in status:
            if line.startswith(name):
                return int(line.split()[1])
    return 0


def _count_pid_namespaces(pid: int) -> int:
    """The number of pid namespaces that contain the process; 0 if it has ended."""
    with contextlib.suppress(OSError), Path(f"/proc/{pid}/status").open() as status:
        for line in status:
            if line.startswith("NSpid:"):
                return len(line.split()) - 1
    return 0


def _descendants(root: int) -> Iterator[int]:
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            stat = (folder / "stat").read_text()
        except OSError:
            continue
        parent = int(stat[stat.rindex(")") + 2 :].split()[1])
        children.setdefault(parent, []).append(int(folder.name))
    waiting = [root]
    while waiting:
        pid = waiting.pop()
        yield pid
        waiting.extend(children.get(pid, ()))


def is_ready_for_signal(pid: int, number: signal.Signals) -> bool:
    """Whether a guest is prepared for this signal. Before that the kernel drops it, as for any pid 1."""
    try:
        return blocks_signal(Path(f"/proc/{pid}/status").read_text(), number)
    except OSError:
        return False


def blocks_signal(status: str, number: signal.Signals) -> bool:
    """Whether a process takes this signal from a descriptor. `status` is its file in /proc."""
    masks = [line.split()[1] for line in status.splitlines() if line.startswith("SigBlk:")]
    return bool(masks) and bool(int(masks[0], 16) >> (number - 1) & 1)
