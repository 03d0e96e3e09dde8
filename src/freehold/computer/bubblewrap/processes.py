"""Who lives in a computer, seen and acted on from the host."""

import contextlib
import os
import resource
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from freehold.computer.cgroups import Cgroup
from freehold.computer.credentials import act_as


@dataclass(frozen=True)
class Population:
    """Every process of one computer. Found by its group where there is one, else as descendants of its pid 1,

    to which all orphans inside come back.
    """

    guest: int
    uid: int
    cgroup: Cgroup | None
    file_size: int

    def members(self) -> list[int]:
        if self.cgroup is not None:
            with contextlib.suppress(OSError):
                # The group also holds the sandbox's helper, which is outside of the walls: one pid namespace less.
                depth = _depth(self.guest)
                return [pid for pid in self.cgroup.processes() if _depth(pid) == depth]
        return list(_descendants(self.guest))

    def hold_writes(self) -> None:
        """No file may grow from now on; deleting stays possible. New processes inherit it."""
        self._set_file_size(0)

    def release_writes(self) -> None:
        self._set_file_size(self.file_size)

    def _set_file_size(self, size: int) -> None:
        """The soft limit only, since not every root may raise a hard one again: the watch comes back to check."""

        def set_all() -> None:
            for pid in self.members():
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, self.file_size))

        with self._held_still():
            act_as(self.uid, set_all)

    def end_all_but_guest(self) -> int:
        """Ends every process but pid 1; returns how many."""
        ended = 0
        with self._held_still():
            for pid in self.members():
                if pid != self.guest:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                        ended += 1
        return ended

    @contextlib.contextmanager
    def _held_still(self) -> Iterator[None]:
        """Nobody forks meanwhile, where the kernel can freeze a group; elsewhere the next round finds who slipped by."""
        frozen = self.cgroup is not None and self.cgroup.freeze(True)
        try:
            yield
        finally:
            if frozen and self.cgroup is not None:
                self.cgroup.freeze(False)

    def end_largest(self) -> int | None:
        """Ends the process that holds the most memory, as the kernel would; never pid 1."""
        sizes = {pid: resident(pid) for pid in self.members() if pid != self.guest}
        if not sizes:
            return None
        largest = max(sizes, key=lambda pid: sizes[pid])
        with contextlib.suppress(ProcessLookupError):
            os.kill(largest, signal.SIGKILL)
        return largest

    def memory(self) -> int:
        return sum(resident(pid) for pid in self.members())

    def threads(self) -> int:
        """Processes and their threads, as the kernel's limit counts them."""
        return sum(_status_number(pid, "Threads:") for pid in self.members())


def resident(pid: int) -> int:
    """Bytes of memory that are the process's own: shared code counts for nobody."""
    return (_status_number(pid, "RssAnon:") + _status_number(pid, "RssShmem:")) * 1024


def _status_number(pid: int, name: str) -> int:
    with contextlib.suppress(OSError), Path(f"/proc/{pid}/status").open() as status:
        for line in status:
            if line.startswith(name):
                return int(line.split()[1])
    return 0


def _depth(pid: int) -> int:
    """In how many pid namespaces the process has a number; 0 for one that is gone."""
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
