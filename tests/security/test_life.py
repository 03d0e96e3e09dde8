"""Everything inside a computer ends with the process that started it, however that ends."""

import asyncio
import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from tests.computer.machines import host_pid
from tests.support.condition import DEADLINE

from freehold.computer.contract.spec import ComputerSpec, Limits
from freehold.computer.library.computer import Computer
from freehold.computer.library.launch import launch
from freehold.computer.walls.cgroups import CgroupParent, find_parents, make_cgroup, remove_stale_cgroups

KEEPER = """
import asyncio, sys
from freehold.computer.contract.backend import find_host_pid
from freehold.computer.library.computer import Computer

async def main():
    async with Computer.start() as computer:
        # A daemon that double-forks into a new Unix session, ignores signals and clears its environment.
        await computer.run("setsid sh -c 'trap \\"\\" TERM INT HUP; env -i sleep 1000 & env -i sleep 1000' >/dev/null 2>&1 &")
        while len([p for p in await computer.processes() if p.name == "sleep"]) < 2:
            await asyncio.sleep(0.01)
        print(find_host_pid(computer.machine), flush=True)
        await asyncio.sleep(1000)

asyncio.run(main())
"""


MOUNTS = """
import asyncio
from pathlib import Path
from freehold.computer import Computer

def read_mounts():
    return Path("/proc/self/mountinfo").read_text()

async def main():
    before = read_mounts()
    async with Computer.start() as computer:
        await computer.run("echo x > /tmp/x")
        assert read_mounts() == before
    assert read_mounts() == before

asyncio.run(main())
"""


def children_of(root: int) -> list[int]:
    """The pids of all descendants, without the root."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text()
            except OSError:
                continue
            parents[int(folder.name)] = int(stat[stat.rindex(")") + 2 :].split()[1])
    found: list[int] = []
    frontier = {root}
    while frontier:
        frontier = {pid for pid, parent in parents.items() if parent in frontier}
        found += sorted(frontier)
    return found


def test_killing_the_keeper_ends_everything_inside() -> None:
    """After SIGKILL the keeper cannot clean up: the kernel kills the whole tree, daemons included."""
    keeper = subprocess.Popen([sys.executable, "-c", KEEPER], stdout=subprocess.PIPE, text=True)
    assert keeper.stdout is not None
    guest = int(keeper.stdout.readline())
    inside = children_of(keeper.pid)
    assert guest in inside
    assert len([pid for pid in inside if _name(pid) == "sleep"]) == 2
    watched = _watch(inside)
    keeper.kill()
    keeper.wait()
    keeper.stdout.close()
    for descriptor in watched:
        # Readable when the process has ended. The check after every test finds processes that are left.
        assert _wait_gone(descriptor)
    # The start of the next computer removes its cgroups.
    remove_stale_cgroups(find_parents())
    assert not [
        folder for parent in find_parents().values() for folder in parent.folder.glob(f"freehold-{keeper.pid}.*")
    ]


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _watch(pids: Iterable[int]) -> list[int]:
    """A descriptor of each that has not ended since it was listed, such as the shell of the last command."""
    found = []
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            found.append(os.pidfd_open(pid))
    return found


def _wait_gone(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    try:
        return bool(poll.poll(DEADLINE * 1000))
    finally:
        os.close(descriptor)


def test_the_cgroups_of_a_running_keeper_are_not_removed() -> None:
    group = make_cgroup(Limits(), find_parents())
    if group is None:
        pytest.skip("no control groups here")
    try:
        remove_stale_cgroups(find_parents())
        assert all(folder.exists() for folder in group.folders.values())
    finally:
        assert group.remove()


def test_the_cgroups_of_a_keeper_in_another_pid_namespace_are_not_removed(tmp_path: Path) -> None:
    """Its pid means another process here, or none."""
    ended = subprocess.Popen(["/bin/true"])
    ended.wait()
    own = Path("/proc/self/ns/pid").stat().st_ino
    names = [f"freehold-{ended.pid}.1.{namespace}.1" for namespace in (own, own + 1)]
    for name in (*names, "freehold-of-somebody-else"):
        (tmp_path / name).mkdir()
    assert remove_stale_cgroups({"memory": CgroupParent(tmp_path, 1)}) == 1
    assert sorted(one.name for one in tmp_path.iterdir()) == [names[1], "freehold-of-somebody-else"]


async def test_stopping_ends_a_daemon_that_ignores_signals() -> None:
    """Stopping the computer ends a program that double-forked and ignores signals."""
    others = children_of(os.getpid())
    async with Computer.start() as computer:
        await computer.run("setsid sh -c 'trap \"\" TERM INT HUP; env -i sleep 1000' >/dev/null 2>&1 &")
        assert computer.machine is not None
        watched = _watch(set(children_of(os.getpid())) - set(others))
    for descriptor in watched:
        assert await asyncio.to_thread(_wait_gone, descriptor)


async def test_everything_inside_ends_with_a_killed_guest() -> None:
    """When pid 1 dies, everything inside dies, and the machine reports it."""
    others = children_of(os.getpid())
    async with Computer.start() as computer:
        await computer.run("setsid sleep 1000 >/dev/null 2>&1 &")
        assert computer.machine is not None
        watched = _watch(set(children_of(os.getpid())) - set(others))
        os.kill(host_pid(computer), signal.SIGKILL)
        async with asyncio.timeout(DEADLINE):
            assert await computer.machine.wait() != 0
        for descriptor in watched:
            assert await asyncio.to_thread(_wait_gone, descriptor)


async def test_kill_minus_one_inside_leaves_the_guest_alive() -> None:
    """kill(-1, SIGKILL) inside kills other processes inside, but not the guest or anything on the host."""
    async with Computer.start() as computer, Computer.start() as bystander:
        await computer.run("kill -9 -1")
        await computer.run("python3 -c 'import os, signal; os.kill(-1, signal.SIGKILL)'")
        assert (await computer.run(["echo", "here"])).stdout == b"here\n"
        assert (await bystander.run(["echo", "here"])).stdout == b"here\n"


async def test_nothing_of_the_computer_is_left_after_it() -> None:
    """No process, no control group, no mount."""
    groups = _groups()
    async with Computer.start() as computer:
        await computer.run("echo x > /tmp/x")
    assert _groups() == groups
    # With mounts of its own: where tests are root, others of them mount small disks meanwhile.
    alone = ["unshare", "--mount"] if os.geteuid() == 0 else []
    await asyncio.to_thread(subprocess.run, [*alone, sys.executable, "-c", MOUNTS], check=True)


def _groups() -> set[Path]:
    own = f"freehold-{os.getpid()}.*"
    return {folder for parent in find_parents().values() for folder in parent.folder.glob(own)}


async def test_a_cancelled_start_leaves_nothing() -> None:
    """A cancelled start leaves no computer behind; the check after every test would find it."""

    async def start_and_stay() -> None:
        async with Computer.start():
            await asyncio.sleep(60)

    for pause in (0.0, 0.005, 0.02, 0.04):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(start_and_stay(), pause)
    assert not _groups()


async def test_a_computer_stopped_right_after_its_start_ends_in_order(tmp_path: Path) -> None:
    """The kernel drops a signal that pid 1 does not handle yet. A stop that is too early would have to wait for the grace."""
    (tmp_path / "workspace").mkdir()
    (tmp_path / "home").mkdir()
    machine = await launch(ComputerSpec(tmp_path / "workspace", tmp_path / "home"), tmp_path / "link")
    await machine.stop(grace=30)
    assert await machine.wait() == 0
