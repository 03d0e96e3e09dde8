"""Project quotas of XFS and ext4: the kernel itself counts what the persistent folders use, whatever hides it.

The owner puts a folder into a project and mounts its file system with `prjquota`. Freehold reads the kernel's count, and
sets the limit of the computer if the project has none. It never puts files into a project: files could then no longer be
moved between the folder and the rest of its file system.
"""

import ctypes
import fcntl
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from freehold.computer.contract.spec import Limits

GET_ATTRIBUTES = 0x801C581F
PROJECT_INHERITED = 0x200
QUOTACTL_FD = 443  # the same on every architecture, from Linux 5.14 on
GET_QUOTA, SET_QUOTA, PROJECT = 0x800007, 0x800008, 2
LIMITS_VALID = 1 | 4
BLOCK = 1024
_QUOTA = struct.Struct("=8QI4x")

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class ProjectUsage:
    """What the kernel counts for a project, and its limits in bytes and files; 0 is no limit."""

    size: int
    inodes: int
    max_size: int
    max_inodes: int


@dataclass(frozen=True)
class ProjectQuota:
    """The projects of the folders that are in one."""

    projects: tuple[tuple[Path, int], ...]

    def measure(self) -> int:
        """Bytes that the projects use, deleted files included; 0 if the kernel does not answer."""
        return sum(found.size for folder, project in self.projects if (found := read_usage(folder, project)))


def use_project_quota(folders: Sequence[Path], limits: Limits) -> ProjectQuota | None:
    """The quota of the folders if every one has an enforced limit; None otherwise. Sets a limit where there is none."""
    projects: dict[tuple[int, int], tuple[Path, int]] = {}
    for folder in folders:
        project = read_project(folder)
        if project == 0:
            return None
        projects[folder.stat().st_dev, project] = (folder, project)
    for folder, project in projects.values():
        usage = read_usage(folder, project)
        if usage is not None and usage.max_size == 0:
            set_limits(folder, project, limits)
            usage = read_usage(folder, project)
        if usage is None or usage.max_size == 0:
            return None
    return ProjectQuota(tuple(projects.values()))


def read_project(folder: Path) -> int:
    """The project that new files in the folder belong to; 0 if there is none."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        flags, _, _, project, _ = struct.unpack("=5I8x", fcntl.ioctl(handle, GET_ATTRIBUTES, bytes(28)))
    except OSError:
        return 0
    finally:
        os.close(handle)
    return project if flags & PROJECT_INHERITED else 0


def read_usage(folder: Path, project: int) -> ProjectUsage | None:
    """None if quotas are off, or this user may not ask."""
    answer = ctypes.create_string_buffer(_QUOTA.size)
    if not _call_quotactl(folder, GET_QUOTA, project, answer):
        return None
    max_blocks, _, size, max_inodes, _, inodes, _, _, _ = _QUOTA.unpack(answer.raw)
    return ProjectUsage(size, inodes, max_blocks * BLOCK, max_inodes)


def set_limits(folder: Path, project: int, limits: Limits) -> bool:
    wanted = _QUOTA.pack(limits.disk // BLOCK, 0, 0, limits.inodes, 0, 0, 0, 0, LIMITS_VALID)
    return _call_quotactl(folder, SET_QUOTA, project, ctypes.create_string_buffer(wanted, _QUOTA.size))


def _call_quotactl(folder: Path, command: int, project: int, data: "ctypes.Array[ctypes.c_char]") -> bool:
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        numbers = (QUOTACTL_FD, handle, command << 8 | PROJECT, project)
        return bool(_libc.syscall(*(ctypes.c_long(number) for number in numbers), data) == 0)
    finally:
        os.close(handle)
