"""Judges every mount and every device of an attached computer. What neither the manifest names nor the engine makes is refused.

An engine makes /proc, /sys and /dev, covers parts of them, and writes a few files of /etc. What stands in such a place is
looked at too: a folder of the machine that is mounted there has files in it.
"""

import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from freehold.computer.attached.wall_report import WallReport
from freehold.computer.contract.conventions import AGENT_HOME, WORKSPACE
from freehold.computer.contract.spec import ComputerSpec
from freehold.computer.walls.inside import SHARED_ETC, TOP_LEVEL
from freehold.computer.walls.mount_table import MountEntry

FOLDER_INSIDE = "/opt/freehold"
PAGE = 4096
KERNEL_MOUNTS = {
    "/proc": ("proc",),
    "/sys": ("sysfs",),
    "/sys/fs/cgroup": ("cgroup2", "tmpfs"),
    "/dev": ("tmpfs",),
    "/dev/pts": ("devpts",),
    "/dev/console": ("devpts",),
    "/dev/mqueue": ("mqueue",),
    **dict.fromkeys(("/dev/shm", "/tmp", "/run"), ("tmpfs",)),  # noqa: S108
}
"""What an engine mounts of the kernel, each with the kinds of file system that it may be."""
DEVICES = {
    **{
        f"/dev/{name}": (1, minor)
        for name, minor in (("null", 3), ("zero", 5), ("full", 7), ("random", 8), ("urandom", 9))
    },
    "/dev/tty": (5, 0),
    "/dev/ptmx": (5, 2),
    "/dev/pts/ptmx": (5, 2),
}
TERMINALS = range(136, 144)
"""The major numbers of pseudo terminals."""
ENGINE_FILES = ("/etc/hosts", "/etc/hostname", "/etc/resolv.conf", "/etc/passwd", "/etc/group", "/run/.containerenv")
PODMAN_SECRETS = "/run/secrets"
"""Podman mounts it, with what /usr/share/containers/mounts.conf names: nothing, except on Red Hat."""
PROGRAM_PLACES = frozenset({"/usr", *(f"/{name}" for name in TOP_LEVEL), *(f"/etc/{name}" for name in SHARED_ETC)})
_CONTAINER_FILE = re.compile(r"/[0-9a-f]{64}/(?:userdata/)?([^/]+)")
"""Where an engine keeps files of one container."""


def check_places(report: WallReport, mounts: Mapping[str, MountEntry], spec: ComputerSpec, link: Path) -> Iterator[str]:
    """`mounts` by their places, the topmost ones. `link` is the folder of the link."""
    folders = {WORKSPACE: spec.workspace, AGENT_HOME: spec.home, FOLDER_INSIDE: link}
    folders |= {one.target: one.source for one in spec.mounts}
    judge = _PlaceJudge(report, mounts, folders, {one.target: one.size for one in spec.memory_mounts})
    for place in mounts:
        yield from judge.check(place)
    for path, device in report.devices.items():
        if not _is_plain_device(path, device):
            yield f"{path} is a device that the manifest does not name (devices)"


def _is_plain_device(path: str, device: tuple[int, ...]) -> bool:
    kind, *number = device
    if kind != stat.S_IFCHR:
        return False
    if path == "/dev/console" or re.fullmatch(r"/dev/pts/\d+", path):
        return number[0] in TERMINALS
    return tuple(number) == DEVICES.get(path)


@dataclass(frozen=True)
class _PlaceJudge:
    report: WallReport
    mounts: Mapping[str, MountEntry]
    folders: Mapping[str, Path]
    memory: Mapping[str, int]

    def check(self, place: str) -> Iterator[str]:
        mount = self.mounts[place]
        if place in self.folders:
            if not self._is_same(place, self.folders[place]):
                yield f"{place} is another folder than the {self.folders[place]} of Freehold (volumes)"
        elif place in self.memory:
            if mount.kind != "tmpfs" or not 0 < self.report.sizes.get(place, 0) <= self.memory[place] + PAGE:
                yield f"{place} is not a folder in memory of at most {self.memory[place]} bytes (tmpfs)"
        elif place in KERNEL_MOUNTS:
            if mount.kind not in KERNEL_MOUNTS[place] or (mount.root != "/" and place in ("/proc", "/sys", "/dev")):
                yield f"{place} is a mount of {mount.kind}, and not what an engine makes there (volumes)"
        elif not (place == "/" or self._is_made_by_engine(place, mount)):
            yield f"{place} is a mount that the manifest does not name (volumes)"

    def _is_made_by_engine(self, place: str, mount: MountEntry) -> bool:
        kind = self.report.kinds.get(place)
        for above in ("/proc", "/sys"):
            if place.startswith(f"{above}/"):
                is_part = above in self.mounts and mount.device == self.mounts[above].device
                is_group = place.startswith("/sys/fs/cgroup/") and mount.kind == "cgroup"
                return is_part or is_group or kind in ("bare", "null")
        if place in ENGINE_FILES:
            found = _CONTAINER_FILE.search(mount.root)
            return kind == "file" and found is not None and found[1] == place.rpartition("/")[2]
        if place == PODMAN_SECRETS:
            return kind == "bare"
        if place in PROGRAM_PLACES:
            # The programs that Freehold has itself tell an agent nothing that it could not know.
            return "ro" in mount.options and self._is_same(place, Path(place))
        return place in DEVICES  # what it is was listed

    def _is_same(self, place: str, folder: Path) -> bool:
        try:
            found = folder.stat()
        except OSError:
            return False
        return self.report.folders.get(place, ()) == (found.st_dev, found.st_ino)
