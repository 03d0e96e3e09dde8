"""Project quotas, with a kernel that plays its part: the one of the tests may have been built without them."""

import ctypes
import fcntl
import os
import struct
from pathlib import Path

import pytest

from freehold.computer.contract.spec import MIB, Limits
from freehold.computer.walls import project_quota
from freehold.computer.walls.limit_watch import describe_mechanisms
from freehold.computer.walls.project_quota import ProjectQuota, read_project, read_usage, use_project_quota

LIMITS = Limits(disk=100 * MIB, inodes=5000)


class QuotaKernel:
    """Answers as quotactl_fd(2) and FS_IOC_FSGETXATTR do; `struct if_dqblk` and `struct fsxattr` are of <linux/...>."""

    def __init__(self) -> None:
        self.projects: dict[str, int] = {}
        self.limits: dict[int, tuple[int, int]] = {}
        self.used: dict[int, tuple[int, int]] = {}
        self.on = True

    def ioctl(self, handle: int, request: int, data: bytes) -> bytes:
        assert (request, len(data)) == (project_quota.GET_ATTRIBUTES, 28)
        project = self.projects.get(os.readlink(f"/proc/self/fd/{handle}"), 0)  # noqa: PTH115
        return struct.pack("=5I8x", 0x200 if project else 0, 0, 0, project, 0)

    def syscall(self, number: ctypes.c_long, *rest: object) -> int:
        _, command, project, data = rest
        assert isinstance(command, ctypes.c_long)
        assert isinstance(project, ctypes.c_long)
        assert isinstance(data, ctypes.Array)
        assert number.value == 443
        assert command.value & 0xFF == 2
        if not self.on:
            return -1
        if command.value >> 8 == 0x800008:
            blocks, _, _, inodes, _, _, _, _, valid = struct.unpack("=8QI4x", bytes(data))
            assert valid == 1 | 4
            self.limits[project.value] = (blocks, inodes)
            return 0
        blocks, inodes = self.limits.get(project.value, (0, 0))
        size, count = self.used.get(project.value, (0, 0))
        data.raw = struct.pack("=8QI4x", blocks, 0, size, inodes, 0, count, 0, 0, 63)
        return 0


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> QuotaKernel:
    kernel = QuotaKernel()
    monkeypatch.setattr(project_quota, "_libc", kernel)
    monkeypatch.setattr(fcntl, "ioctl", kernel.ioctl)
    return kernel


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    workspace, home = tmp_path / "workspace", tmp_path / "home"
    workspace.mkdir()
    home.mkdir()
    return workspace, home


def test_folders_in_a_project_get_the_limit_and_are_counted_by_the_kernel(
    kernel: QuotaKernel, folders: tuple[Path, Path]
) -> None:
    kernel.projects = {str(folder): 7 for folder in folders}
    quota = use_project_quota(folders, LIMITS)
    assert quota == ProjectQuota(((folders[1], 7),))
    assert kernel.limits == {7: (100 * 1024, 5000)}
    kernel.used[7] = (42 * MIB, 3)
    assert quota is not None
    assert quota.measure() == 42 * MIB
    assert describe_mechanisms(None, quota)["disk"] == "project quota"


def test_a_limit_of_the_owner_is_kept(kernel: QuotaKernel, folders: tuple[Path, Path]) -> None:
    kernel.projects = {str(folders[0]): 7, str(folders[1]): 8}
    kernel.limits = {7: (10, 10), 8: (20, 20)}
    quota = use_project_quota(folders, LIMITS)
    assert quota is not None
    assert kernel.limits == {7: (10, 10), 8: (20, 20)}
    kernel.used = {7: (1000, 1), 8: (500, 1)}
    assert quota.measure() == 1500


def test_without_a_project_or_without_quotas_the_watcher_counts_alone(
    kernel: QuotaKernel, folders: tuple[Path, Path]
) -> None:
    assert use_project_quota(folders, LIMITS) is None
    kernel.projects = {str(folders[0]): 7}
    assert use_project_quota(folders, LIMITS) is None
    kernel.projects[str(folders[1])] = 7
    kernel.on = False
    assert use_project_quota(folders, LIMITS) is None
    assert describe_mechanisms(None, None)["disk"] == "watch"


def test_the_kernel_of_this_machine_answers_or_refuses(tmp_path: Path) -> None:
    """No fake: a folder in no project."""
    assert read_project(tmp_path) == 0
    assert read_project(tmp_path / "gone") == 0
    assert read_usage(tmp_path, 1) is None or os.geteuid() == 0
    assert use_project_quota([tmp_path], LIMITS) is None
