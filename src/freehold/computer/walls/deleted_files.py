"""Finds the files without a name that processes of a computer keep: they use the disk and are in no folder.

Such a file lives as long as a process has it open or mapped, or as its descriptor waits in a socket. The kernel shows
the first two in /proc. Of descriptors in sockets it shows only the number.
"""

import contextlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from freehold.computer.contract.conventions import AGENT_HOME, WORKSPACE
from freehold.computer.walls.credentials import call_as_uid
from freehold.computer.walls.processes import FileHolders

MAX_DESCRIPTORS = 400_000
"""Descriptors that one scan looks at, which takes about two seconds."""
MAX_IN_FLIGHT = 32
"""Descriptors that may wait in sockets. Each may hold a file that cannot be seen."""
_NOT_ON_DISK = (b"/memfd:", b"/SYSV", b"/dev/zero", b"/dev/shm/", b"/anon_hugepage", b"/[aio]")
_PERSISTENT = (f"{WORKSPACE}/".encode(), f"{AGENT_HOME}/".encode())


@dataclass(frozen=True)
class DeletedFiles:
    """`size` and `count` of the files. `uncountable` says why there may be more; empty if all were counted."""

    size: int = 0
    count: int = 0
    in_flight: int = 0
    uncountable: str = ""


@dataclass
class _Scan:
    devices: frozenset[int]
    files: dict[tuple[int, int], int] = field(default_factory=dict)
    mapped: "list[_Mapping]" = field(default_factory=list)
    sockets: dict[int, int] = field(default_factory=dict)
    descriptors: int = 0

    def add(self, found: os.stat_result) -> None:
        if found.st_nlink == 0 and found.st_dev in self.devices:
            self.files[found.st_dev, found.st_ino] = found.st_blocks * 512


def measure_deleted(processes: FileHolders, folders: Sequence[Path]) -> DeletedFiles:
    """The files on the disks of the folders that have no name and that a process of the computer keeps."""
    devices = set()
    for folder in folders:
        with contextlib.suppress(OSError):
            devices.add(folder.stat().st_dev)
    scan = _Scan(frozenset(devices))
    pids = processes.list_pids()

    def look() -> None:
        for pid in pids:
            _scan_process(pid, scan)
            if scan.descriptors > MAX_DESCRIPTORS:
                break

    # A keeper that is root in a container may not inspect other users' processes; their own user may.
    call_as_uid(processes.uid, look)
    for mapping in scan.mapped:
        _add_mapped(mapping, scan)
    in_flight = sum(scan.sockets.values())
    uncountable = ""
    if scan.descriptors > MAX_DESCRIPTORS:
        uncountable = f"more than {MAX_DESCRIPTORS} descriptors are open"
    elif in_flight > MAX_IN_FLIGHT:
        uncountable = f"{in_flight} descriptors wait in sockets (at most {MAX_IN_FLIGHT})"
    return DeletedFiles(sum(scan.files.values()), len(scan.files), in_flight, uncountable)


def _scan_process(pid: int, scan: _Scan) -> None:
    with contextlib.suppress(OSError):
        scan.add(os.stat(f"/proc/{pid}/cwd"))  # noqa: PTH116 - pathlib doubles the time of a scan
    if not _scan_descriptors(f"/proc/{pid}", scan):
        # Its main thread has ended: the other threads still have the table.
        with contextlib.suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208
                if _scan_descriptors(f"/proc/{pid}/task/{thread}", scan):
                    break
    scan.mapped.extend(_find_deleted_mappings(pid))


def _scan_descriptors(folder: str, scan: _Scan) -> bool:
    """Whether it has any."""
    try:
        names = os.listdir(f"{folder}/fd")  # noqa: PTH208
    except OSError:
        return False
    scan.descriptors += len(names)
    if scan.descriptors > MAX_DESCRIPTORS:
        return True
    for name in names:
        try:
            found = os.stat(f"{folder}/fd/{name}")  # noqa: PTH116
        except OSError:
            continue  # it was closed meanwhile
        if stat.S_ISSOCK(found.st_mode):
            if found.st_ino not in scan.sockets:
                scan.sockets[found.st_ino] = _count_in_flight(f"{folder}/fdinfo/{name}")
        else:
            scan.add(found)
    return bool(names)


def _count_in_flight(path: str) -> int:
    with contextlib.suppress(OSError, ValueError), Path(path).open("rb") as file:
        _, found, rest = file.read(4096).partition(b"\nscm_fds:")
        if found:
            return int(rest.split(None, 1)[0])
    return 0


@dataclass(frozen=True)
class _Mapping:
    """A mapping of a deleted file. `place` leads to the file; `extent` is the end of the mapped part."""

    place: str
    device: int
    inode: int
    path: bytes
    extent: int


def _find_deleted_mappings(pid: int) -> Iterator[_Mapping]:
    """One mapping of each deleted file. A file may be mapped and no longer open."""
    try:
        with Path(f"/proc/{pid}/maps").open("rb") as file:
            maps = file.read()
    except OSError:
        return
    if b" (deleted)" not in maps:
        return
    seen: set[tuple[int, int]] = set()
    for line in maps.splitlines():
        if not line.endswith(b" (deleted)"):
            continue
        addresses, _, offset, device, inode, path = line.split(None, 5)
        major, minor = (int(part, 16) for part in device.split(b":"))
        name = (os.makedev(major, minor), int(inode))
        if path.startswith(_NOT_ON_DISK) or name in seen:
            continue
        seen.add(name)
        first, last = (int(part, 16) for part in addresses.split(b"-"))
        yield _Mapping(f"/proc/{pid}/map_files/{first:x}-{last:x}", *name, path, int(offset, 16) + last - first)


def _add_mapped(mapping: _Mapping, scan: _Scan) -> None:
    try:
        scan.add(os.stat(mapping.place))  # noqa: PTH116
    except PermissionError:
        # Only root may look through a mapping. Of the file, the mapped part is then known.
        if mapping.path.startswith(_PERSISTENT):
            scan.files.setdefault((mapping.device, mapping.inode), mapping.extent)
    except OSError:
        return  # it was unmapped meanwhile
