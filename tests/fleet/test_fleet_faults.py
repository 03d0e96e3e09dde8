"""What happens to twenty computers at work when a part of the fleet is killed, cut off or comes back."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fleet.fleet_work import (
    AT_WORK,
    RAY_DEADLINE,
    SMALL,
    all_ready,
    at_work,
    find_process,
    remote,
    run_jobs,
    split,
)
from tests.support.condition import until
from tests.support.fleet import RunningFleet
from tests.support.processes import read_command

from freehold.computer import Computer
from freehold.errors import FreeholdError

pytestmark = pytest.mark.shared_processes
"""Ray and nodes that were killed are started again below this process."""


@pytest.mark.parametrize("victim", ["raylet/raylet", "ray_inside.py", "gcs_server"])
async def test_computers_do_not_notice_when_ray_is_killed(fleet: RunningFleet, victim: str) -> None:
    """Ray knows where there is room. It does not have the computers, and is started again."""
    async with at_work(fleet) as computers:
        jobs = await run_jobs(computers)
        os.kill(find_process(fleet, "node-0" if "raylet" in victim else "head", victim), signal.SIGKILL)
        assert await jobs == [f"1\ndone-{number}\n".encode() for number in range(AT_WORK)]
        async with Computer.start(on=fleet.place, limits=SMALL) as later:
            assert (await later.run("echo room")).stdout == b"room\n"


async def test_a_killed_node_is_told_lost_and_work_goes_on_elsewhere_from_the_last_files(
    fleet: RunningFleet, tmp_path: Path
) -> None:
    async with at_work(fleet) as computers:
        kept = await Computer.start(tmp_path, on=fleet.place, limits=SMALL)
        victim = remote(kept).node
        await kept.run("echo half > done")
        await until(lambda: (tmp_path / "done").exists())
        jobs = await run_jobs(computers)
        fleet.nodes[victim].kill()
        assert await remote(kept).wait() == -9
        assert f"The node {victim} is lost" in remote(kept).lost_because
        async with Computer.start(tmp_path, on=fleet.place, limits=SMALL) as again:
            assert (await again.run("cat done")).stdout == b"half\n"
            assert remote(again).node != victim
        finished, lost = split(await jobs)
        assert len(finished) + len(lost) == AT_WORK
        assert lost
        assert all(isinstance(one, FreeholdError) for one in lost)
        assert all(one.startswith(b"1\ndone-") for one in finished)
        await kept.close()
        fleet.nodes[victim].wait()
        fleet.join(victim, again=True)


async def test_computers_are_found_again_by_the_next_head_and_jobs_are_not_done_twice(
    fleet: RunningFleet, tmp_path: Path
) -> None:
    """What ran was told lost with its link. What is asked while there is no head waits for the next one. The next one
    knows what was removed there, and leaves alone what was changed here only."""
    for name in ("given", "mine"):
        (tmp_path / name).write_text("at first")
    async with at_work(fleet, AT_WORK - 1) as computers:
        kept = await Computer.start(tmp_path, on=fleet.place, limits=SMALL)
        pids = {remote(one).guest_pid for one in (*computers, kept)}
        jobs = await run_jobs(computers)
        await kept.run("echo made > made; rm given")
        (tmp_path / "mine").write_text("changed here")
        assert fleet.head is not None
        fleet.head.kill()
        fleet.head.wait()
        fetching = asyncio.ensure_future(remote(kept).fetch_files())
        await asyncio.to_thread(fleet.start_head)
        finished, lost = split(await jobs)
        assert len(finished) + len(lost) == AT_WORK - 1
        assert all(isinstance(one, FreeholdError) for one in lost)
        await fetching
        assert {one.name: one.read_text() for one in tmp_path.iterdir()} == {"made": "made\n", "mine": "changed here"}
        for computer in (*computers, kept):
            await computer.wait_connected()
            assert (await computer.run("touch began; wc -l < began")).stdout in (b"0\n", b"1\n")
        assert pids == {remote(one).guest_pid for one in (*computers, kept)}
        await kept.close()


async def test_a_node_that_was_cut_off_ends_what_was_told_lost(fleet: RunningFleet) -> None:
    """It is silent for as long as the head waits, and comes back: its computers must not be there twice."""
    async with at_work(fleet) as computers:
        victim = remote(computers[0]).node
        pids = [remote(one).guest_pid or 0 for one in computers if remote(one).node == victim]
        fleet.nodes[victim].send_signal(signal.SIGSTOP)
        assert await remote(computers[0]).wait() == -9
        fleet.nodes[victim].send_signal(signal.SIGCONT)
        await until(lambda: not any(map(read_command, pids)))
        others = [one for one in computers if remote(one).node != victim]
        assert (await others[0].run("echo untouched")).stdout == b"untouched\n"


CLIENT = """
import asyncio, sys
from freehold.computer import Computer, Limits
async def main():
    limits = Limits(cpus=0.25, memory=256 * 2**20, tmp=16 * 2**20)
    computers = await asyncio.gather(*(Computer.start(on=sys.argv[1], limits=limits)._open() for _ in range(20)))
    print(*(one.machine.guest_pid for one in computers), flush=True)
    await asyncio.gather(*(one.run("sleep 1000") for one in computers))
asyncio.run(main())
"""


@pytest.mark.parametrize("with_head", [False, True], ids=["gateway", "keeper"])
async def test_computers_end_with_the_process_that_started_them(fleet: RunningFleet, with_head: bool) -> None:
    """As the gateway, killed in the middle of work, or the keeper, whose programs end with it: the head too."""
    client = subprocess.Popen(  # noqa: ASYNC220 - it is short
        [sys.executable, "-c", CLIENT, fleet.place], stdout=subprocess.PIPE
    )
    assert client.stdout is not None
    with client.stdout as output:
        pids = [int(pid) for pid in (await asyncio.to_thread(output.readline)).split()]
    assert len(pids) == AT_WORK
    client.kill()
    client.wait()
    if with_head:
        assert fleet.head is not None
        fleet.head.kill()
        fleet.head.wait()
        await asyncio.to_thread(fleet.start_head)
    await until(lambda: not any(map(read_command, pids)))
    await until(lambda: all_ready(fleet), RAY_DEADLINE)
