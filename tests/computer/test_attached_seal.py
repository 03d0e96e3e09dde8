"""What a computer that somebody else started must have. Each wall is taken away in turn, and its absence is named."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.condition import until

from freehold.computer.attached.backend import AttachedBackend, find_link_folder
from freehold.computer.attached.seal import WallReport, find_missing_walls, read_group_limits
from freehold.computer.contract.spec import GIB, MIB, ComputerSpec, Limits, MemoryMount, Mount
from freehold.errors import FreeholdError

UID = 64242
NONE = "0" * 16
STATUS = f"""Uid:\t{UID}\t{UID}\t{UID}\t{UID}
Gid:\t{UID}\t{UID}\t{UID}\t{UID}
Groups:\t{UID}
NoNewPrivs:\t1
Seccomp:\t2
CapPrm:\t{NONE}
CapEff:\t{NONE}
CapBnd:\t{NONE}
CapAmb:\t{NONE}
"""
MOUNTS = """1 0 0:1 / / ro,relatime - overlay overlay rw
2 1 0:2 / /proc rw,nosuid - proc proc rw
3 1 0:3 / /dev rw,nosuid - tmpfs tmpfs rw
4 3 0:4 / /dev/shm rw,nosuid - tmpfs shm rw
5 1 0:5 / /sys ro,nosuid - sysfs sysfs ro
6 5 0:6 / /sys/fs/cgroup rw,nosuid - tmpfs tmpfs rw
7 1 0:7 / /tmp rw,nosuid - tmpfs tmpfs rw
8 1 0:8 / /run rw,nosuid - tmpfs tmpfs rw
9 1 8:1 /w /workspace rw - ext4 /dev/vda rw
10 1 8:1 /h /home/agent rw - ext4 /dev/vda rw
11 1 8:1 /l /opt/freehold ro - ext4 /dev/vda rw
12 1 8:1 /b /mnt/books ro - ext4 /dev/vda rw
13 1 8:1 /b /mnt/notes rw - ext4 /dev/vda rw
14 1 0:9 / /mnt/fast rw - tmpfs tmpfs rw
15 1 8:1 /hosts /etc/hosts ro - ext4 /dev/vda rw
"""
LIMITS = """Limit                     Soft Limit           Hard Limit           Units
Max open files            16384                16384                files
Max file size             8589934592           8589934592           bytes
"""
GROUP = {"memory.max": "4294967296\n", "pids.max": "1024\n", "cpu.max": "200000 100000\n"}


@pytest.fixture
def spec(tmp_path: Path) -> ComputerSpec:
    for name in ("workspace", "home", "books", "notes"):
        (tmp_path / name).mkdir()
    mounts = (Mount(tmp_path / "books", "/mnt/books"), Mount(tmp_path / "notes", "/mnt/notes", writable=True))
    memory = (MemoryMount("/mnt/fast", MIB),)
    return ComputerSpec(tmp_path / "workspace", tmp_path / "home", Limits(), mounts, memory)


@pytest.fixture
def sealed(spec: ComputerSpec) -> WallReport:
    folders = {"/workspace": spec.workspace.stat(), "/home/agent": spec.home.stat()}
    return WallReport(
        pid=1,
        status=STATUS,
        limits=LIMITS,
        mounts=MOUNTS,
        interfaces="Inter-|\n face |\n    lo: 0 0\n",
        cgroup=dict(GROUP),
        sizes={"/tmp": GIB, "/dev/shm": GIB, "/run": 16 * MIB},
        folders={place: (found.st_dev, found.st_ino) for place, found in folders.items()},
    )


def test_a_sealed_computer_lacks_nothing(sealed: WallReport, spec: ComputerSpec) -> None:
    assert find_missing_walls(sealed, spec, UID) == []


@pytest.mark.parametrize(
    ("field", "before", "after", "told"),
    [
        ("status", "NoNewPrivs:\t1", "NoNewPrivs:\t0", "can gain privileges"),
        ("status", "Seccomp:\t2", "Seccomp:\t0", "system calls are not filtered"),
        ("status", f"CapEff:\t{NONE}", "CapEff:\t00000000a80425fb", "CapEff is 00000000a80425fb"),
        ("status", f"CapBnd:\t{NONE}", "CapBnd:\t00000000a80425fb", "it has capabilities"),
        ("status", f"Uid:\t{UID}\t{UID}", "Uid:\t0\t0", "its user is"),
        ("status", f"Groups:\t{UID}", "Groups:\t0 998", "other groups"),
        ("interfaces", "    lo: 0 0\n", "    lo: 0 0\n  eth0: 0 0\n", "it has a network: eth0"),
        ("interfaces", "    lo: 0 0\n", "", "it has a network: unknown"),
        ("mounts", "/ / ro,relatime", "/ / rw,relatime", "/ can be written"),
        ("mounts", "/b /mnt/books ro", "/b /mnt/books rw", "/mnt/books can be written"),
        ("mounts", "12 1 8:1 /b /mnt/books ro - ext4 /dev/vda rw\n", "", "/mnt/books is not mounted"),
        ("mounts", "/hosts /etc/hosts ro", "/hosts /etc/hosts rw", "/etc/hosts can be written"),
        ("mounts", "15 1", "16 1 0:9 /d /run/docker.sock ro - tmpfs tmpfs rw\n15 1", "/run/docker.sock is a socket"),
        ("limits", "16384                16384 ", "16384                unlimited ", "open_files has no limit"),
        ("limits", "8589934592           8589934592", "8589934592           unlimited", "file_size has no limit"),
    ],
)
def test_a_missing_wall_is_named(
    sealed: WallReport, spec: ComputerSpec, field: str, before: str, after: str, told: str
) -> None:
    assert before in getattr(sealed, field), "the attack is there"
    weaker = replace(sealed, **{field: getattr(sealed, field).replace(before, after, 1)})
    missing = find_missing_walls(weaker, spec, UID)
    assert any(told in one for one in missing), missing


def test_a_process_beside_others_and_a_folder_of_somebody_else_are_named(
    sealed: WallReport, spec: ComputerSpec
) -> None:
    assert "pid namespace" in find_missing_walls(replace(sealed, pid=17), spec, UID)[0]
    other = replace(sealed, folders={**sealed.folders, "/workspace": (1, 1)})
    assert "another folder" in find_missing_walls(other, spec, UID)[0]


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("memory.max", "max", "memory has no limit"),
        ("memory.max", "8589934592", "memory has a limit of"),
        ("pids.max", "max", "processes has no limit"),
        ("cpu.max", "max 100000", "cpus has no limit"),
        ("cpu.max", "400000 100000", "cpus has a limit of 4"),
    ],
)
def test_a_limit_that_is_missing_or_higher_is_named(
    sealed: WallReport, spec: ComputerSpec, name: str, value: str, told: str
) -> None:
    missing = find_missing_walls(replace(sealed, cgroup={**GROUP, name: value}), spec, UID)
    assert any(told in one for one in missing), missing


@pytest.mark.parametrize("place", ["/tmp", "/run", "/dev/shm"])
def test_temporary_folders_without_a_bound_are_named(sealed: WallReport, spec: ComputerSpec, place: str) -> None:
    missing = find_missing_walls(replace(sealed, sizes={**sealed.sizes, place: 200 * GIB}), spec, UID)
    assert any(one.startswith(f"{place} is not a folder in memory") for one in missing), missing


def test_limits_are_read_from_both_versions_of_control_groups() -> None:
    old = {
        "memory/memory.limit_in_bytes": "1048576\n",
        "pids/pids.max": "10\n",
        "cpu/cpu.cfs_quota_us": "150000\n",
        "cpu/cpu.cfs_period_us": "100000\n",
    }
    assert read_group_limits(old) == {"memory": 1048576, "processes": 10, "cpus": 1.5}
    assert read_group_limits(GROUP) == {"memory": 4294967296, "processes": 1024, "cpus": 2}
    unlimited = {"memory/memory.limit_in_bytes": "9223372036854771712", "cpu/cpu.cfs_quota_us": "-1"}
    assert read_group_limits(unlimited) == {}


def test_a_computer_is_attached_by_a_folder_of_this_machine() -> None:
    assert find_link_folder(None) == Path("/var/lib/freehold-link")
    assert find_link_folder("unix:///srv/link") == Path("/srv/link")
    for wrong in ("tcp://10.0.0.1:2375", "relative", "unix://relative"):
        with pytest.raises(FreeholdError) as caught:
            find_link_folder(wrong)
        assert caught.value.code == "computer.bad-address"


async def test_one_folder_has_one_computer(spec: ComputerSpec, tmp_path: Path) -> None:
    """The second is refused at once, and the first still waits for its computer."""
    link = tmp_path / "link"
    link.mkdir()
    plain = replace(spec, mounts=(), memory_mounts=())
    backend, other = AttachedBackend(f"unix://{link}"), AttachedBackend(f"unix://{link}")
    first = backend.make_transport(tmp_path / "a.sock")
    second = other.make_transport(tmp_path / "b.sock")
    waiting = asyncio.create_task(backend.start(plain, first))
    try:
        await until((link / "handover").exists)
        with pytest.raises(FreeholdError) as caught:
            await other.start(plain, second)
        assert caught.value.code == "computer.only-one"
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        first.close()
        second.close()
    assert not (link / "handover").exists(), "nothing is left"
