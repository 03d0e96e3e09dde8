"""What a computer that somebody else started must have. Each wall is taken away in turn, and its absence is named."""

import asyncio
import json
import os
import socket
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.condition import until

from freehold.computer.attached import start_program
from freehold.computer.attached.backend import AttachedBackend, find_link_folder
from freehold.computer.attached.seal import find_missing_walls, read_group_limits
from freehold.computer.attached.wall_report import WallReport
from freehold.computer.contract.spec import GIB, MIB, ComputerSpec, Limits, MemoryMount, Mount
from freehold.errors import FreeholdError

UID = 64242
NONE = "0" * 16
LINK = Path(__file__).parent
HOSTS = "/var/lib/docker/containers/" + 64 * "5" + "/hosts"
STATUS = f"""Pid:\t1
Uid:\t{UID}\t{UID}\t{UID}\t{UID}
Gid:\t{UID}\t{UID}\t{UID}\t{UID}
Groups:\t{UID}
NoNewPrivs:\t1
Seccomp:\t2
CapPrm:\t{NONE}
CapEff:\t{NONE}
CapBnd:\t{NONE}
CapAmb:\t{NONE}
"""
MOUNTS = f"""1 0 0:1 / / ro,relatime - overlay overlay rw
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
15 1 8:1 {HOSTS} /etc/hosts ro - ext4 /dev/vda rw
16 2 0:2 /sys /proc/sys ro - proc proc rw
17 2 0:10 / /proc/acpi ro - tmpfs tmpfs ro
18 2 0:3 /null /proc/kcore rw - tmpfs tmpfs rw
19 5 0:11 / /sys/firmware ro - tmpfs tmpfs ro
20 6 0:12 /docker/1 /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory
21 3 0:13 / /dev/pts rw - devpts devpts rw
22 3 0:14 / /dev/mqueue rw - mqueue mqueue rw
"""
LIMITS = """Limit                     Soft Limit           Hard Limit           Units
Max open files            16384                16384                files
Max file size             8589934592           8589934592           bytes
"""
DEVICES = {
    **{f"/dev/{name}": (1, number) for name, number in (("null", 3), ("zero", 5), ("full", 7), ("random", 8))},
    "/dev/tty": (5, 0),
    "/dev/pts/0": (136, 0),
    "/dev/pts/ptmx": (5, 2),
}
NAMESPACES = {name: f"{name}:[4026599999]" for name in ("pid", "mnt", "net", "ipc", "uts")}
LIST_DEVICES = """
import importlib.util, json, os, sys
found = importlib.util.spec_from_file_location("start_program", sys.argv[1])
program = importlib.util.module_from_spec(found)
found.loader.exec_module(program)
os.chroot(sys.argv[2])
print(json.dumps(program.list_devices({"/mnt/books"})))
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
    folders = {"/workspace": spec.workspace, "/home/agent": spec.home, "/opt/freehold": LINK}
    folders |= {one.target: one.source for one in spec.mounts}
    return WallReport(
        pid=1,
        status=STATUS,
        limits=LIMITS,
        mounts=MOUNTS,
        interfaces="Inter-|\n face |\n    lo: 0 0\n",
        cgroup=dict(GROUP),
        sizes={"/tmp": GIB, "/dev/shm": GIB, "/run": 16 * MIB, "/mnt/fast": MIB},
        folders={place: (folder.stat().st_dev, folder.stat().st_ino) for place, folder in folders.items()},
        namespaces=dict(NAMESPACES),
        kinds={"/etc/hosts": "file", "/proc/acpi": "bare", "/proc/kcore": "null", "/sys/firmware": "bare"},
        devices={path: (stat.S_IFCHR, *number) for path, number in DEVICES.items()},
    )


def test_a_sealed_computer_lacks_nothing(sealed: WallReport, spec: ComputerSpec) -> None:
    assert find_missing_walls(sealed, spec, UID, LINK) == []


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
        ("mounts", "/etc/hosts ro", "/etc/hosts rw", "/etc/hosts can be written"),
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
    missing = find_missing_walls(weaker, spec, UID, LINK)
    assert any(told in one for one in missing), missing


def test_a_process_beside_others_and_a_folder_of_somebody_else_are_named(
    sealed: WallReport, spec: ComputerSpec
) -> None:
    assert "pid namespace" in find_missing_walls(replace(sealed, pid=17), spec, UID, LINK)[0]
    other = replace(sealed, folders={**sealed.folders, "/workspace": (1, 1)})
    assert "another folder" in find_missing_walls(other, spec, UID, LINK)[0]


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("30 1 8:1 / /host ro - ext4 /dev/vda rw", "folder"),
        ("30 1 8:1 / /mnt/other ro - ext4 /dev/vda rw", "bare"),
        ("30 1 0:5 / /host-dev ro - devtmpfs udev rw", "folder"),
        ("30 2 0:99 / /proc/bus ro - proc proc rw", "folder"),
        ("30 2 0:25 / /proc/scsi ro - tmpfs tmpfs rw", "folder"),
        ("30 5 0:25 / /sys/kernel ro - tmpfs tmpfs rw", "folder"),
        ("30 1 8:1 /root/key /etc/hostname ro - ext4 /dev/vda rw", "file"),
        (f"30 1 8:1 {HOSTS} /etc/resolv.conf ro - ext4 /dev/vda rw", "file"),
        ("30 1 8:1 /secrets /run/secrets ro - ext4 /dev/vda rw", "folder"),
        ("30 8 0:25 /x /run/secrets/key ro - tmpfs tmpfs rw", "file"),
        ("30 1 8:1 /srv /usr ro - ext4 /dev/vda rw", "folder"),
        ("30 3 0:5 /fuse /dev/fuse ro - devtmpfs udev rw", "other"),
    ],
)
def test_a_mount_that_nobody_named_is_named_though_it_is_read_only(
    sealed: WallReport, spec: ComputerSpec, line: str, kind: str
) -> None:
    place = line.split()[4]
    weaker = replace(sealed, mounts=f"{MOUNTS}{line}\n", kinds={**sealed.kinds, place: kind})
    missing = find_missing_walls(weaker, spec, UID, LINK)
    assert f"{place} is a mount that the manifest does not name (volumes)" in missing


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("0:3 / /dev rw,nosuid - tmpfs", "0:3 / /dev rw,nosuid - devtmpfs", "/dev is a mount of devtmpfs"),
        ("0:2 / /proc rw", "0:2 /1 /proc rw", "/proc is a mount of proc"),
        ("/ /run rw,nosuid - tmpfs", "/ /run rw,nosuid - ext4", "/run is a mount of ext4"),
        ("/ /mnt/fast rw - tmpfs", "/ /mnt/fast rw - ext4", "/mnt/fast is not a folder in memory"),
        ("11 1 8:1 /l /opt/freehold ro - ext4 /dev/vda rw\n", "", "/opt/freehold is not mounted"),
    ],
)
def test_a_place_of_the_engine_with_something_else_is_named(
    sealed: WallReport, spec: ComputerSpec, before: str, after: str, told: str
) -> None:
    assert before in MOUNTS, "the attack is there"
    missing = find_missing_walls(replace(sealed, mounts=MOUNTS.replace(before, after)), spec, UID, LINK)
    assert any(one.startswith(told) for one in missing), missing


@pytest.mark.parametrize("place", ["/mnt/books", "/mnt/notes", "/opt/freehold"])
def test_another_folder_at_a_place_of_the_manifest_is_named(sealed: WallReport, spec: ComputerSpec, place: str) -> None:
    other = replace(sealed, folders={**sealed.folders, place: (1, 1)})
    (missing,) = find_missing_walls(other, spec, UID, LINK)
    assert missing.startswith(f"{place} is another folder than")


def test_programs_that_freehold_has_itself_may_be_shown(sealed: WallReport, spec: ComputerSpec) -> None:
    found = Path("/usr").stat()
    line = "30 1 8:1 /usr /usr ro - ext4 /dev/vda rw\n"
    shown = replace(sealed, mounts=MOUNTS + line, folders={**sealed.folders, "/usr": (found.st_dev, found.st_ino)})
    assert find_missing_walls(shown, spec, UID, LINK) == []
    writable = replace(shown, mounts=MOUNTS + line.replace(" ro ", " rw "))
    assert "/usr can be written (read_only)" in find_missing_walls(writable, spec, UID, LINK)


@pytest.mark.parametrize(
    ("path", "device"),
    [
        ("/dev/fuse", (stat.S_IFCHR, 10, 229)),
        ("/dev/vda", (stat.S_IFBLK, 8, 0)),
        ("/opt/tools/kvm", (stat.S_IFCHR, 10, 232)),
        ("/dev/null", (stat.S_IFCHR, 1, 1)),
        ("/dev/null", (stat.S_IFBLK, 1, 3)),
        ("/dev/pts/1", (stat.S_IFCHR, 10, 229)),
    ],
)
def test_a_device_that_nobody_named_is_named(
    sealed: WallReport, spec: ComputerSpec, path: str, device: tuple[int, int, int]
) -> None:
    more = replace(sealed, devices={**sealed.devices, path: device})
    assert find_missing_walls(more, spec, UID, LINK) == [
        f"{path} is a device that the manifest does not name (devices)"
    ]


@pytest.mark.parametrize("name", ["pid", "mnt", "net", "ipc", "uts"])
def test_a_namespace_of_freehold_or_of_the_machine_is_named(sealed: WallReport, spec: ComputerSpec, name: str) -> None:
    machine = {"pid": 4026531836, "uts": 4026531838, "ipc": 4026531839}
    own = str(Path(f"/proc/self/ns/{name}").readlink())
    for shared in (own, *([f"{name}:[{machine[name]}]"] if name in machine else [])):
        weaker = replace(sealed, namespaces={**NAMESPACES, name: shared})
        assert find_missing_walls(weaker, spec, UID, LINK) == [f"it has no {name} namespace of its own ({name})"]
    silent = replace(sealed, namespaces={})
    assert f"its {name} namespace is unknown" in find_missing_walls(silent, spec, UID, LINK)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_the_first_program_lists_every_device_outside_of_other_mounts(tmp_path: Path) -> None:
    (tmp_path / "opt/tools").mkdir(parents=True)
    (tmp_path / "mnt/books").mkdir(parents=True)
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    try:
        for place in ("opt/tools/fuse", "mnt/books/fuse"):
            os.mknod(tmp_path / place, stat.S_IFCHR | 0o666, os.makedev(10, 229))
    except PermissionError:
        pytest.skip("this machine lets nobody make devices")
    ran = subprocess.run(
        [sys.executable, "-c", LIST_DEVICES, start_program.__file__, tmp_path], capture_output=True, check=True
    )
    assert json.loads(ran.stdout) == {"/opt/tools/fuse": [stat.S_IFCHR, 10, 229]}


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
    missing = find_missing_walls(replace(sealed, cgroup={**GROUP, name: value}), spec, UID, LINK)
    assert any(told in one for one in missing), missing


@pytest.mark.parametrize("place", ["/tmp", "/run", "/dev/shm"])
def test_temporary_folders_without_a_bound_are_named(sealed: WallReport, spec: ComputerSpec, place: str) -> None:
    missing = find_missing_walls(replace(sealed, sizes={**sealed.sizes, place: 200 * GIB}), spec, UID, LINK)
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


def attach(folder: Path, report: WallReport) -> socket.socket:
    """As the first program of a computer does."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(str(folder / "handover"))
    start_program.send(connection, vars(report))
    return connection


async def test_a_connection_of_a_computer_that_is_ending_is_not_judged(
    spec: ComputerSpec, sealed: WallReport, tmp_path: Path
) -> None:
    """It could claim every wall. The one that stays is asked, and told what it lacks."""
    link = tmp_path / "link"
    link.mkdir()
    backend = AttachedBackend(f"unix://{link}")
    transport = backend.make_transport(tmp_path / "a.sock")
    starting = asyncio.create_task(backend.start(replace(spec, mounts=(), memory_mounts=()), transport))
    try:
        await until((link / "handover").exists)
        (await asyncio.to_thread(attach, link, sealed)).close()
        with await asyncio.to_thread(attach, link, replace(sealed, pid=17)) as connection:
            answer, descriptors = await asyncio.to_thread(start_program.receive, connection)
        assert descriptors == []
        assert any(line.startswith("it is process 17 and not the first one") for line in answer["refused"])
        with pytest.raises(FreeholdError) as caught:
            await starting
        assert caught.value.code == "computer.no-isolation"
    finally:
        starting.cancel()
        await asyncio.gather(starting, return_exceptions=True)
        transport.close()
    assert not (link / "handover").exists()
