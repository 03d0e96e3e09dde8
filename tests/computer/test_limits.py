"""The limits: which mechanism enforces each, events at 80 % and at the limit, and recovery below it."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.support.condition import DEADLINE, until

from freehold.computer.bubblewrap import sandbox
from freehold.computer.contract.report import LimitEvent
from freehold.computer.contract.spec import GIB, KIB, MIB, Limits
from freehold.computer.library.computer import Computer
from freehold.computer.walls.cgroups import CgroupParent, find_parents, make_cgroup
from freehold.computer.walls.disk_guard import measure_disk
from freehold.computer.walls.limit_watch import describe_mechanisms

SMALL = Limits(
    memory=192 * MIB, processes=40, disk=8 * MIB, inodes=400, tmp=16 * MIB, file_size=64 * MIB, open_files=128
)

MANY_PROCESSES = "for i in $(seq 60); do sleep 1000 & done"
"""None of them ends before the limit is met, however slowly they start. The shell ends there."""


class Heard:
    """Collects the events of one computer, and waits for them."""

    def __init__(self) -> None:
        self.events: list[LimitEvent] = []
        self._changed = asyncio.Event()

    def hear(self, event: LimitEvent) -> None:
        self.events.append(event)
        self._changed.set()

    async def wait_for(self, wanted: Callable[[LimitEvent], bool]) -> LimitEvent:
        async with asyncio.timeout(DEADLINE):
            while True:
                for event in self.events:
                    if wanted(event):
                        return event
                self._changed.clear()
                await self._changed.wait()


@asynccontextmanager
async def limited(limits: Limits = SMALL) -> AsyncIterator[tuple[Computer, Heard]]:
    async with Computer.start(limits=limits) as computer:
        assert computer.machine is not None
        heard = Heard()
        computer.machine.subscribe(heard.hear)
        yield computer, heard


def is_about(kind: str, limit: str) -> Callable[[LimitEvent], bool]:
    return lambda event: (event.kind, event.limit) == (kind, limit)


async def test_the_disk_limit_warns_blocks_writes_and_releases_them() -> None:
    """A warning at 80 %. At the limit writes fail and deleting works. Below it writing works again."""
    async with limited() as (computer, heard):
        await computer.run("head -c 7000000 /dev/zero > most")
        warning = await heard.wait_for(is_about("warning", "disk"))
        assert warning.setting == "computer.limits.disk"
        await computer.run("head -c 3000000 /dev/zero > rest")
        await heard.wait_for(is_about("reached", "disk"))

        async def refused() -> bool:
            return not (await computer.run("echo x > more")).ok

        await until(refused)
        assert (await computer.run("rm most rest more")).ok

        async def works() -> bool:
            return (await computer.run("echo x > more")).ok

        await until(works)


async def test_the_inode_limit_warns_and_blocks() -> None:
    async with limited() as (computer, heard):
        await computer.run("mkdir many; cd many; for i in $(seq 340); do : > $i; done")
        assert (await heard.wait_for(is_about("warning", "inodes"))).allowed == 400
        await computer.run("cd many; for i in $(seq 400 500); do : > $i; done")
        assert (await heard.wait_for(is_about("reached", "inodes"))).setting == "computer.limits.inodes"


async def test_the_memory_limit_warns_and_is_named_in_the_event() -> None:
    """After a command was killed the counter has grown, and the event names the setting."""
    async with limited() as (computer, heard):
        assert computer.machine is not None
        before = computer.machine.usage().out_of_memory or 0
        held = await computer.spawn(["python3", "-c", "kept = b'x' * (165 << 20); print(1, flush=True); input()"])
        await heard.wait_for(is_about("warning", "memory"))
        held.kill()
        await held.wait()
        ran = await computer.run(["python3", "-c", "kept = [b'x' * (8 << 20) * (n + 1) for n in range(40)]"])
        assert ran.exit_code != 0
        usage = computer.machine.usage()
        if computer.machine.isolation.limits["memory"] != "watch":
            assert (usage.out_of_memory or 0) > before
            assert (await heard.wait_for(is_about("reached", "memory"))).setting == "computer.limits.memory"


async def test_every_command_that_the_memory_limit_kills_names_it() -> None:
    """The second command as well as the first, although the watcher reports a limit once per interval."""
    async with limited() as (computer, heard):
        assert computer.machine is not None
        if computer.machine.isolation.limits["memory"] == "watch":
            pytest.skip("one process is bounded by its own rlimit there")
        for number in range(1, 4):
            ran = await computer.run(["python3", "-c", "kept = bytearray(b'x') * (300 << 20)"])
            assert (ran.signal, ran.limit) == (9, "memory")
            computer.machine.usage()
            assert len([event for event in heard.events if is_about("reached", "memory")(event)]) == number


async def test_the_process_limit_is_counted_and_named() -> None:
    async with limited() as (computer, heard):
        ran = await computer.run(MANY_PROCESSES, timeout=DEADLINE)
        assert b"fork" in ran.stderr.lower()
        assert computer.machine is not None
        computer.machine.usage()
        assert (await heard.wait_for(is_about("reached", "processes"))).setting == "computer.limits.processes"


async def test_no_event_arrives_after_unsubscribing() -> None:
    async with Computer.start(limits=SMALL) as computer:
        assert computer.machine is not None
        heard, silent = Heard(), Heard()
        stop = computer.machine.subscribe(silent.hear)
        computer.machine.subscribe(heard.hear)
        stop()
        stop()
        await computer.run("head -c 9000000 /dev/zero > fill")
        await heard.wait_for(is_about("reached", "disk"))
        assert silent.events == []


async def test_file_size_and_open_files_are_limited() -> None:
    async with limited(Limits(file_size=MIB, open_files=64)) as (computer, _):
        assert not (await computer.run("head -c 2000000 /dev/zero > large")).ok
        assert (await computer.run("stat -c %s large")).text.strip() == str(MIB)
        many = "import os\ntry:\n  while True: os.open('/', 0)\nexcept OSError as e: print(e.errno)"
        assert (await computer.run(["python3", "-c", many])).text.strip() == "24"


async def test_the_cpu_limit_is_enforced_with_cgroups() -> None:
    """A computer with a fifth of a core gets about that, however many programs run."""
    async with limited(Limits(cpus=0.2)) as (computer, _):
        assert computer.machine is not None
        if computer.machine.isolation.limits["cpus"] == "affinity":
            pytest.skip("no control group to hold it")
        clock = asyncio.get_running_loop().time
        before, began = computer.machine.usage().cpu_seconds or 0.0, clock()
        await computer.run("for i in 1 2 3 4; do timeout 1 sh -c 'while :; do :; done' & done; wait")
        used, seconds = (computer.machine.usage().cpu_seconds or 0.0) - before, clock() - began
        # Without the limit, four busy programs would use every core. It holds in each tenth of a second.
        assert used < 0.2 * seconds + 0.3


async def test_temporary_files_get_at_most_a_quarter_of_the_memory() -> None:
    """/tmp and /dev/shm are each at most a quarter of the memory, whatever the spec says."""
    async with limited(Limits(memory=256 * MIB, tmp=GIB)) as (computer, _):
        sizes = (await computer.run("df -k --output=size /tmp /dev/shm | tail -n +2")).text.split()
        assert sizes == [str(64 * KIB)] * 2


# Without cgroups, as for an owner without root.


async def test_without_cgroups_other_mechanisms_enforce_the_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory by the watcher, which kills the largest process; processes by rlimit; and `isolation` says so."""
    monkeypatch.setattr(sandbox, "find_parents", dict)
    async with limited() as (computer, heard):
        assert computer.machine is not None
        told = computer.machine.isolation.limits
        assert (told["memory"], told["processes"], told["cpus"]) == ("watch", "rlimit", "affinity")
        hog = "import time; kept = bytearray(b'x') * (60 << 20); time.sleep(8)"
        hogs = [await computer.spawn(["python3", "-c", hog]) for _ in range(5)]
        assert (await heard.wait_for(is_about("reached", "memory"))).setting == "computer.limits.memory"
        assert (await computer.run(["echo", "here"])).stdout == b"here\n"
        for one in hogs:
            one.kill()
            await one.wait()
        ran = await computer.run(MANY_PROCESSES, timeout=DEADLINE)
        assert b"fork" in ran.stderr.lower()
        memory = await computer.run(["python3", "-c", "import os; os.memfd_create('x')"])
        assert b"Function not implemented" in memory.stderr


def test_isolation_names_the_mechanism_of_each_limit() -> None:
    assert describe_mechanisms(None)["memory"] == "watch"
    group = make_cgroup(Limits(), find_parents())
    if group is None:
        pytest.skip("no control groups here")
    try:
        assert describe_mechanisms(group)["memory"] in ("cgroup v1", "cgroup v2")
    finally:
        assert group.remove()


# Cgroups of version 2, imitated by a folder, because this kernel has version 1.


@pytest.fixture
def version_2(tmp_path: Path) -> Path:
    (tmp_path / "cgroup.controllers").write_text("cpuset cpu io memory pids")
    (tmp_path / "cgroup.subtree_control").write_text("memory pids cpu")
    (tmp_path / "cgroup.procs").write_text("")
    return tmp_path


@pytest.mark.skipif(os.geteuid() != 0, reason="root makes its group at the top")
def test_version_2_cgroups_are_found_and_limited(version_2: Path) -> None:
    (version_2 / "cgroup.subtree_control").write_text("memory pids cpu")

    parents = {name: CgroupParent(version_2, 2) for name in ("memory", "pids", "cpu")}
    group = make_cgroup(Limits(memory=GIB, processes=7, cpus=1.5), parents)
    assert group is not None
    folder = group.folders["memory"]
    assert (folder / "memory.max").read_text() == str(GIB)
    assert (folder / "memory.swap.max").read_text() == "0"
    assert (folder / "pids.max").read_text() == "7"
    assert (folder / "cpu.max").read_text() == "150000 100000"
    assert group.process_files == (folder / "cgroup.procs",)
    assert describe_mechanisms(group)["processes"] == "cgroup v2"


@pytest.mark.skipif(os.geteuid() != 0, reason="root makes its group at the top")
def test_version_2_counters_are_read(version_2: Path) -> None:
    group = make_cgroup(Limits(), {name: CgroupParent(version_2, 2) for name in ("memory", "pids", "cpu")})
    assert group is not None
    folder = group.folders["memory"]
    (folder / "memory.current").write_text("1000000\n")
    (folder / "memory.stat").write_text("anon 300000\nfile 600000\nshmem 100000\n")
    (folder / "memory.events").write_text("low 0\nhigh 0\nmax 9\noom 2\noom_kill 3\n")
    (folder / "pids.current").write_text("5\n")
    (folder / "pids.events").write_text("max 4\n")
    (folder / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    assert group.memory() == 500_000
    assert group.out_of_memory_kills() == 3
    assert (group.process_count(), group.refused_forks(), group.cpu_seconds()) == (5, 4, 2.5)
    assert group.freeze(True)
    assert (folder / "cgroup.freeze").read_text() == "1"


def test_a_controller_that_refuses_its_limit_is_not_reported(tmp_path: Path) -> None:
    """If the limit cannot be written, it is not enforced, and the next mechanism is reported."""
    parents = {"memory": CgroupParent(tmp_path / "missing", 2)}
    assert make_cgroup(Limits(), parents) is None


def test_without_permission_there_is_no_cgroup(tmp_path: Path) -> None:
    assert find_parents(tmp_path, "5:memory:/x\n0::/\n") == {}


# Measurement


def test_disk_use_counts_blocks_once_and_every_name(tmp_path: Path) -> None:
    """Holes and second names use no space, but a second name is one more to list; links are not followed."""
    (tmp_path / "full").write_bytes(bytes(range(256)) * 4096)
    with (tmp_path / "hole").open("wb") as hole:
        hole.truncate(GIB)
    os.link(tmp_path / "full", tmp_path / "second")
    (tmp_path / "link").symlink_to("/usr")
    use = measure_disk([tmp_path])
    assert use.inodes == 4
    assert MIB <= use.size < 2 * MIB
    assert not use.too_deep
    assert measure_disk([tmp_path / "gone"]).inodes == 0
