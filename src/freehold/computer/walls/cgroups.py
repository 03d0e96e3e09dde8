"""Control groups: the kernel limits memory, processes and processor time of a whole computer.

Each controller may be version 1 or version 2; many machines mix them. A user who may not create groups (no root, no
delegated group) gets none; the limits are then enforced by rlimits and the watcher.
"""

import contextlib
import itertools
import os
import re
import signal
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from freehold.computer.contract.spec import Limits
from freehold.errors import FreeholdError

ROOT = Path("/sys/fs/cgroup")
CONTROLLERS = ("memory", "pids", "cpu", "cpuacct", "freezer")
PERIOD = 100_000
PREFIX = "freehold-"
GROUP_NAME = re.compile(PREFIX + r"(?P<pid>\d+)[.-](?P<started>\d+)(?:\.(?P<namespace>\d+))?[.-]\d+")
"""Before 0.2 the name had no namespace, and hyphens between its parts. That version ignores those with dots."""

# Joins the cgroups while it still has the permission, then becomes the next program.
ENTER_GROUPS = 'while [ "$1" != -- ]; do echo $$ > "$1" || exit 125; shift; done; shift; exec "$@"'

Version = Literal[1, 2]
_serial = itertools.count(1)


@dataclass(frozen=True)
class CgroupParent:
    """A group in which this process may create groups."""

    folder: Path
    version: Version


def find_parents(root: Path = ROOT, own: str | None = None) -> dict[str, CgroupParent]:
    """For each controller, the writable group in which the groups of computers are created."""
    lines = (Path("/proc/self/cgroup").read_text() if own is None else own).splitlines()
    found: dict[str, CgroupParent] = {}
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if number == "0":
            for controller, parent in _parents_v2(root, path).items():
                found.setdefault(controller, parent)
        for controller in controllers.split(","):
            if controller not in CONTROLLERS:
                continue
            # The mount may start at the root of the tree or, in a container, at our own group.
            for folder in (root / controller / path.lstrip("/"), root / controller):
                if os.access(folder, os.W_OK | os.X_OK) and (folder / "cgroup.procs").exists():
                    found[controller] = CgroupParent(folder, 1)
                    break
    return found


def _parents_v2(root: Path, path: str) -> dict[str, CgroupParent]:
    """Root creates groups at the top, as docker does; other users beside their own group, if it is delegated."""
    mount = root if (root / "cgroup.controllers").exists() else root / "unified"
    if not (mount / "cgroup.controllers").exists():
        return {}
    parent = mount if os.geteuid() == 0 else (mount / path.lstrip("/")).parent
    if not os.access(parent, os.W_OK | os.X_OK) or not os.access(parent / "cgroup.procs", os.W_OK):
        return {}
    wanted = [c for c in ("memory", "pids", "cpu") if c in (parent / "cgroup.controllers").read_text().split()]
    for controller in wanted:
        # EBUSY: a group that contains processes cannot enable controllers; use those that are enabled already.
        with contextlib.suppress(OSError):
            (parent / "cgroup.subtree_control").write_text(f"+{controller}")
    shared = (parent / "cgroup.subtree_control").read_text().split()
    return {controller: CgroupParent(parent, 2) for controller in wanted if controller in shared}


@dataclass(frozen=True)
class Cgroup:
    """The groups of one computer: one folder per controller (version 1) or one for all (version 2)."""

    folders: Mapping[str, Path]
    versions: Mapping[str, Version]

    @property
    def process_files(self) -> tuple[Path, ...]:
        """The files to which a process writes its pid to join the groups."""
        return tuple(dict.fromkeys(folder / "cgroup.procs" for folder in self.folders.values()))

    def entering_command(self) -> list[str]:
        """The beginning of a command line: it joins the groups and becomes the program that follows."""
        return _enter(self.process_files)

    def entering_command_of_version_2(self) -> list[str]:
        """The same for the groups that a single thread cannot join. Empty if there are none."""
        files = {folder / "cgroup.procs" for kind, folder in self.folders.items() if self.versions[kind] == 2}
        return _enter(sorted(files)) if files else []

    @contextlib.contextmanager
    def entered(self, parents: Mapping[str, CgroupParent]) -> Iterator[None]:
        """What this thread starts meanwhile is in the groups of version 1 from its first instruction.

        A thread moves itself at once. For the move of a whole process the kernel waits about 10 ms, until no processor
        is in the middle of a fork.
        """
        kinds = [kind for kind, version in self.versions.items() if version == 1]
        try:
            try:
                for kind in kinds:
                    (self.folders[kind] / "tasks").write_text("0")
            except OSError as error:
                raise FreeholdError(
                    "computer.no-isolation",
                    f"The computer cannot be put into its control group: {error.strerror}",
                    hint="Run freehold doctor to see which limits this machine can hold",
                ) from error
            yield
        finally:
            for kind in kinds:
                (parents[kind].folder / "tasks").write_text("0")

    def processes(self) -> list[int]:
        for entrance in self.process_files:
            return [int(line) for line in entrance.read_text().split()]
        return []

    def memory(self) -> int | None:
        """Memory that cannot be reclaimed: without the page cache of files on disk, with temporary files."""
        total = self._number("memory", "memory.usage_in_bytes", "memory.current")
        if total is None:
            return None
        cache = self._keyed("memory", "memory.stat", "memory.stat", "file" if self.versions["memory"] == 2 else "cache")
        shared = self._keyed("memory", "memory.stat", "memory.stat", "shmem")
        return max(0, total - (cache or 0) + (shared or 0))

    def memory_peak(self) -> int | None:
        return self._number("memory", "memory.max_usage_in_bytes", "memory.peak")

    def out_of_memory_kills(self) -> int:
        return self._keyed("memory", "memory.oom_control", "memory.events", "oom_kill") or 0

    def process_count(self) -> int | None:
        return self._number("pids", "pids.current", "pids.current")

    def refused_forks(self) -> int:
        return self._keyed("pids", "pids.events", "pids.events", "max") or 0

    def cpu_seconds(self) -> float | None:
        if self.versions.get("cpu") == 2:
            micro = self._keyed("cpu", "", "cpu.stat", "usage_usec")
            return None if micro is None else micro / 1e6
        nano = self._number("cpuacct", "cpuacct.usage", "")
        return None if nano is None else nano / 1e9

    def freeze(self, frozen: bool) -> bool:
        """Freeze or thaw every process; False if the kernel cannot."""
        with contextlib.suppress(OSError):
            if "freezer" in self.folders:
                (self.folders["freezer"] / "freezer.state").write_text("FROZEN" if frozen else "THAWED")
                return True
            for controller, folder in self.folders.items():
                if self.versions[controller] == 2:
                    (folder / "cgroup.freeze").write_text("1" if frozen else "0")
                    return True
        return False

    def is_frozen(self) -> bool:
        """Whether every process stands still. Freezing takes a moment after `freeze`."""
        with contextlib.suppress(OSError):
            if "freezer" in self.folders:
                return (self.folders["freezer"] / "freezer.state").read_text().strip() == "FROZEN"
            for controller, folder in self.folders.items():
                if self.versions[controller] == 2:
                    return "frozen 1" in (folder / "cgroup.events").read_text().splitlines()
        return False

    @property
    def thaw_file(self) -> Path | None:
        """The file of a freezer of version 1. Processes in such a freezer cannot be killed before they are thawed."""
        return self.folders["freezer"] / "freezer.state" if self.versions.get("freezer") == 1 else None

    def allow_swap(self, allowed: bool) -> None:
        """Let the kernel move memory of the group to swap. Kernels without swap accounting have no such setting."""
        folder, version = self.folders.get("memory"), self.versions.get("memory")
        if folder is None:
            return
        if not allowed:
            _forbid_swap(folder, "memory")
        elif version == 2:
            with contextlib.suppress(OSError):
                (folder / "memory.swap.max").write_text("max")
        else:
            for name, value in (("memory.memsw.limit_in_bytes", "-1"), ("memory.swappiness", "100")):
                with contextlib.suppress(OSError):
                    (folder / name).write_text(value)

    def kill(self) -> None:
        """Kill every process in the group. A process forked at the same time may survive: call again until `remove` succeeds."""
        for controller, folder in self.folders.items():
            if self.versions[controller] == 2 and (folder / "cgroup.kill").exists():
                with contextlib.suppress(OSError):
                    (folder / "cgroup.kill").write_text("1")
                return
        with contextlib.suppress(OSError):
            for pid in self.processes():
                if pid == os.getpid():
                    continue  # a thread of ours that has not left it: see `entered`
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        # Frozen processes of version 1 end when they are thawed.
        for folder in self.folders.values():
            with contextlib.suppress(OSError):
                if (folder / "freezer.state").exists():
                    (folder / "freezer.state").write_text("THAWED")

    def remove(self) -> bool:
        """Remove the groups; True if none is left. A group is busy until its last process is reaped."""
        gone = True
        for folder in dict.fromkeys(self.folders.values()):
            try:
                folder.rmdir()
            except FileNotFoundError:
                continue
            except OSError:
                gone = False
        return gone

    def _number(self, controller: str, v1: str, v2: str) -> int | None:
        folder = self.folders.get(controller)
        if folder is None:
            return None
        try:
            return int((folder / (v1 if self.versions[controller] == 1 else v2)).read_text())
        except (OSError, ValueError):
            return None

    def _keyed(self, controller: str, v1: str, v2: str, key: str) -> int | None:
        folder = self.folders.get(controller)
        if folder is None:
            return None
        try:
            text = (folder / (v1 if self.versions[controller] == 1 else v2)).read_text()
        except OSError:
            return None
        for line in text.splitlines():
            name, _, value = line.partition(" ")
            if name == key:
                return int(value)
        return None


def _enter(files: Iterable[Path]) -> list[str]:
    return ["/bin/sh", "-c", ENTER_GROUPS, "sh", *map(str, files), "--"]


def make_cgroup(limits: Limits, parents: Mapping[str, CgroupParent]) -> Cgroup | None:
    """A new group with the limits set, or None if no group can be created."""
    name = f"{PREFIX}{os.getpid()}.{_read_start_time(os.getpid())}.{_own_pid_namespace()}.{next(_serial)}"
    folders: dict[str, Path] = {}
    versions: dict[str, Version] = {}
    for controller, parent in parents.items():
        folder = parent.folder / name
        try:
            folder.mkdir(exist_ok=True)
        except OSError:
            continue
        folders[controller] = folder
        versions[controller] = parent.version
    group = Cgroup(folders, versions)
    for controller in tuple(folders):
        try:
            for setting, value in _settings(controller, versions[controller], limits):
                (folders[controller] / setting).write_text(value)
        except OSError:
            # A controller that refuses its limit enforces nothing; report the next mechanism instead.
            folder = folders.pop(controller)
            versions.pop(controller)
            if folder not in folders.values():
                folder.rmdir()
    for controller in folders:
        _forbid_swap(folders[controller], controller)
    return group if folders else None


def _settings(controller: str, version: Version, limits: Limits) -> list[tuple[str, str]]:
    if controller == "memory":
        name = "memory.limit_in_bytes" if version == 1 else "memory.max"
        return [(name, str(limits.memory))]
    if controller == "pids":
        return [("pids.max", str(limits.processes))]
    if controller == "cpu":
        quota = max(1000, int(limits.cpus * PERIOD))
        if version == 1:
            return [("cpu.cfs_period_us", str(PERIOD)), ("cpu.cfs_quota_us", str(quota))]
        return [("cpu.max", f"{quota} {PERIOD}")]
    return []


def _forbid_swap(folder: Path, controller: str) -> None:
    """Forbid swap, which would extend the memory limit. Kernels without swap accounting do not have these files."""
    if controller != "memory":
        return
    with contextlib.suppress(OSError):
        (folder / "memory.swap.max").write_text("0")
    with contextlib.suppress(OSError):
        (folder / "memory.memsw.limit_in_bytes").write_text((folder / "memory.limit_in_bytes").read_text().strip())
    with contextlib.suppress(OSError):
        (folder / "memory.swappiness").write_text("0")


def remove_stale_cgroups(parents: Mapping[str, CgroupParent]) -> int:
    """Kill and remove groups whose keeper has ended. Returns the number of removed folders.

    A keeper in another pid namespace cannot be seen from here, so its groups are its own affair.
    """
    removed, namespace = 0, _own_pid_namespace()
    for parent in set(parents.values()):
        for folder in parent.folder.glob(f"{PREFIX}*"):
            name = GROUP_NAME.fullmatch(folder.name)
            if name is None or name["namespace"] not in (None, namespace):
                continue
            if _read_start_time(int(name["pid"])) == name["started"]:
                continue
            group = Cgroup({"any": folder}, {"any": parent.version})
            group.kill()
            removed += group.remove()
    return removed


def _own_pid_namespace() -> str:
    return str(Path("/proc/self/ns/pid").stat().st_ino)


def _read_start_time(pid: int) -> str:
    """Start time in clock ticks. Together with the pid it identifies one process, even if the pid is reused."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat[stat.rindex(")") + 2 :].split()[19]


def find_group_of(pid: int, root: Path = ROOT) -> Cgroup | None:
    """The group that another program, such as a container engine, made for a process. None if it cannot be seen here.

    It must not be one that this process is in as well: freezing or killing it would end us.
    """
    own = set(Path("/proc/self/cgroup").read_text().splitlines())
    folders: dict[str, Path] = {}
    versions: dict[str, Version] = {}
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        if line in own or path == "/":
            continue
        if number == "0":
            mount = root if (root / "cgroup.controllers").exists() else root / "unified"
            folder = mount / path.lstrip("/")
            with contextlib.suppress(OSError):
                for controller in (folder / "cgroup.controllers").read_text().split():
                    folders.setdefault(controller, folder)
                    versions.setdefault(controller, 2)
            continue
        for controller in controllers.split(","):
            folder = root / controller / path.lstrip("/")
            if controller in CONTROLLERS and (folder / "cgroup.procs").exists():
                folders[controller] = folder
                versions[controller] = 1
    return Cgroup(folders, versions) if folders else None
