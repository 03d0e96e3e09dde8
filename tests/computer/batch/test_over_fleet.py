"""A batch whose computers run on the nodes of a fleet: the same words, the same results."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from tests.cli.test_map import count_ends, has_done, is_working, run_map, start_map
from tests.support.condition import until, wait_until
from tests.support.fleet import RunningFleet
from tests.support.processes import find_descendants

from freehold.computer import Computer, Limits
from freehold.computer.contract.spec import MIB

pytestmark = pytest.mark.shared_processes
"""A node that was killed is started again below this process."""
SMALL = Limits(memory=96 * MIB, cpus=0.2, tmp=16 * MIB)
FILES, AT_ONCE = 48, 24
RESUMED = 20


def test_a_script_over_files_with_24_computers_at_once_on_two_nodes(fleet: RunningFleet, tmp_path: Path) -> None:
    (tmp_path / "work.sh").write_text('wc -c < "$1"; cp "$1" "$FREEHOLD_RESULTS/copy"\n')
    inputs = [tmp_path / f"{number}.txt" for number in range(FILES)]
    for number, path in enumerate(inputs):
        path.write_text("x" * number)
    out = tmp_path / "out"
    batch = Computer.map(tmp_path / "work.sh", inputs, into=out, parallel=AT_ONCE, limits=SMALL, on=fleet.place)
    summary = asyncio.run(batch.run())
    assert summary.is_done, [one for one in summary.tasks if one.state != "done"]
    for number, task in enumerate(summary.tasks):
        assert task.folder is not None
        assert (out / task.folder / "stdout").read_text() == f"{number}\n"
        assert (out / task.folder / "results/copy").read_text() == "x" * number


async def test_what_a_killed_node_had_is_begun_again_on_another_one(fleet: RunningFleet, tmp_path: Path) -> None:
    """Each task is done once. Those of the first attempt wait until the node is killed."""
    (tmp_path / "work.sh").write_text('[ "$FREEHOLD_ATTEMPT" = 2 ] || sleep 2; echo "$1"\n')
    out, lines = tmp_path / "out", [f"line {number}" for number in range(FILES)]

    def count(event: str) -> Counter[int]:
        journal = (out / "journal.jsonl").read_text().splitlines()[1:] if out.exists() else []
        return Counter(one["task"] for one in map(json.loads, journal) if one["event"] == event)

    place = Computer.map(tmp_path / "work.sh", lines, into=out, parallel=AT_ONCE, limits=SMALL, on=fleet.place)
    running = asyncio.ensure_future(place.run())
    await until(lambda: _count_sleeping(fleet, "node-1") >= 3)
    fleet.nodes["node-1"].kill()
    summary = await running
    assert summary.is_done, [one for one in summary.tasks if one.state != "done"]
    assert count("done") == dict.fromkeys(range(1, FILES + 1), 1)
    assert count("lost").total() > 0
    assert count("begun") == count("done") + count("lost")
    fleet.nodes["node-1"].wait()
    await asyncio.to_thread(fleet.join, "node-1", again=True)
    await asyncio.to_thread(fleet.wait_ready, 2)


def test_after_kill_9_of_the_command_and_the_head_each_task_ends_once(
    fleet: RunningFleet, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice, in the middle of work. The next head ends what the dead command had on the nodes."""
    folder = tmp_path_factory.mktemp("map")  # the path of a socket is short, and that of a test is not
    monkeypatch.setenv("TMPDIR", str(folder))
    out = folder / "out"
    (folder / "work.sh").write_text('sleep 0.5; echo "$1"; cat /proc/sys/kernel/random/uuid\n')
    (folder / "lines").write_text("".join(f"{number}\n" for number in range(1, RESUMED + 1)))
    words = [str(folder / "work.sh"), "--lines", str(folder / "lines"), "--into", str(out), "--parallel", "4"]
    words += ["--on", "fleet", "--home", str(fleet.home.root), "--memory", "96MiB", "--cpus", "0.2"]
    for wanted in (3, 8):
        process = start_map(*words)
        wait_until(lambda wanted=wanted: has_done(out, wanted) and is_working(out) and fleet.status().computers)  # type: ignore[misc]
        assert fleet.head is not None
        os.killpg(process.pid, signal.SIGKILL)
        fleet.head.kill()
        process.communicate()
        fleet.head.wait()
        fleet.start_head()
    before = {number: _read_results(out, number) for number in count_ends(out, "done")}
    begun_before = count_ends(out, "begun")
    assert 8 <= len(before) < RESUMED
    done = run_map(*words, "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout)
    assert (summary["done"], summary["lost"], summary["failed"]) == (RESUMED, 0, 0)
    begun, lost = count_ends(out, "begun"), count_ends(out, "lost")
    assert count_ends(out, "done") == dict.fromkeys(range(1, RESUMED + 1), 1)
    assert {number: begun[number] for number in before} == {number: begun_before[number] for number in before}
    assert {number: _read_results(out, number) for number in before} == before, (
        "each run of the script writes another id"
    )
    assert lost, "what ran when everything was killed is told lost"
    assert all(begun[number] == 1 + lost[number] for number in range(1, RESUMED + 1))
    for number in range(1, RESUMED + 1):
        assert _read_results(out, number)[0] == str(number)
    assert len({_read_results(out, number)[1] for number in range(1, RESUMED + 1)}) == RESUMED
    wait_until(lambda: not fleet.status().computers)
    fleet.wait_ready(2)


def _read_results(out: Path, number: int) -> list[str]:
    """The lines of the one result of this task."""
    (found,) = (out / "tasks").glob(f"{number:02d}-*")
    return (found / "stdout").read_text().splitlines()


def _count_sleeping(fleet: RunningFleet, name: str) -> int:
    """How many scripts are at work on the node. One whose computer was lost before that is not told lost."""
    commands = find_descendants(fleet.nodes[name].pid).values()
    return sum(command.split() == ["sleep", "2"] for command in commands)


def test_the_word_fleet_is_that_of_the_home(
    fleet: RunningFleet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the command line, and in a program."""
    (tmp_path / "work.sh").write_text('echo "$1"\n')
    words = [sys.executable, "-m", "freehold.cli.main", "map", "work.sh", "--lines", "-", "--on", "fleet?priority=5"]
    words += ["--home", str(fleet.home.root), "--memory", "96MiB", "--cpus", "0.2"]
    done = subprocess.run(words, input="one\n", cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    (task,) = (tmp_path / "work-results/tasks").iterdir()
    assert (task / "stdout").read_text() == "one\n"

    async def see_node() -> str:
        async with Computer.start(on="fleet", limits=SMALL) as computer:
            assert computer.machine is not None
            return computer.machine.isolation.runs_as

    monkeypatch.setenv("FREEHOLD_HOME", str(fleet.home.root))
    assert " on the node node-" in asyncio.run(see_node())
