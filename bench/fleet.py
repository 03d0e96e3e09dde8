"""What does a computer on another machine cost over one here, and how soon does work go on when its machine is lost?

    python -m bench.fleet [--quick] [--json]

A head and two nodes with real Ray on this machine, each node at an address of its own: the network costs nothing, and
all of them share the processors, so that the figures are those of the fleet's own work. Here and there take turns.
"""

import asyncio
import contextlib
import json
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from tests.support.fleet import RunningFleet, running_fleet
from tests.support.processes import find_descendants

from bench.batch import SCRIPT, run_plain
from bench.computer import medians
from bench.harness import Figure, main
from freehold.computer import Computer, Limits
from freehold.computer.contract.spec import MIB
from freehold.fleet.machine import RemoteMachine

SMALL = Limits(cpus=0.25, memory=256 * MIB, tmp=16 * MIB)
MAX_START_RATIO, MAX_WARM_RATIO, MIN_READ_RATIO, MAX_MAP_RATIO = 1.5, 1.4, 0.75, 1.15
MANY, MAX_MANY = 24, 1.0
FILES, MAX_FILES = 5000, 2.0
MAX_LOSS = 6.0
MAX_MEMORY = 1200
PARALLEL = len(os.sched_getaffinity(0))
LATENCIES = Path(__file__).parent / "data/fleet_latencies.json"


def measure_memory(fleet: RunningFleet) -> float:
    """MB of head and nodes, with all of their processes."""
    roots = [one.pid for one in (fleet.head, *fleet.nodes.values()) if one is not None]
    return sum(_read_pss(pid) for root in roots for pid in (root, *find_descendants(root))) / 1e6


def _read_pss(pid: int) -> int:
    """Bytes, with its share of what processes have together. One that has just ended has none."""
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return 0


async def measure_start(place: str, rounds: int) -> tuple[float, float]:
    """Milliseconds from nothing to the first output: there, and here."""

    async def start(on: str | None) -> None:
        async with Computer.start(on=on, limits=SMALL) as computer:
            await computer.run("echo hello")

    there, here = await medians(rounds, lambda: start(place), lambda: start(None))
    return there * 1000, here * 1000


async def measure_use(place: str, rounds: int, size: int) -> dict[str, tuple[float, float]]:
    """There and here: milliseconds of a command, and MB/s of reading a file of `size` MB."""
    async with (
        Computer.start(on=place, limits=Limits(memory=1024 * MIB)) as there,
        Computer.start(limits=Limits(memory=1024 * MIB)) as here,
    ):
        warm = await medians(rounds, lambda: there.run(["/bin/true"]), lambda: here.run(["/bin/true"]))
        for computer in (there, here):
            (await computer.run(f"head -c {size}000000 /dev/urandom > large")).check()
        read = await medians(5, lambda: there.files.read("large"), lambda: here.files.read("large"))
    return {"warm": (warm[0] * 1000, warm[1] * 1000), "read": (size / read[0], size / read[1])}


async def time_requests(place: str, count: int) -> list[float]:
    """Milliseconds of requests that a program makes to a node, by the head, and of their answers. Sorted."""
    async with Computer.start(on=place, limits=SMALL) as computer:
        times = []
        for _ in range(count):
            began = time.perf_counter()
            await _remote(computer).refresh_usage()
            times.append((time.perf_counter() - began) * 1000)
    return sorted(times)


def record_latencies() -> None:
    """Writes what `bench.fleet_scale` reads: `python -c "from bench.fleet import record_latencies as r; r()"`."""
    with running_fleet() as fleet:
        times = asyncio.run(time_requests(fleet.place, 500))
    how = "Milliseconds of requests from a program to a node and back by the head, all on one machine, over TLS."
    LATENCIES.write_text(json.dumps({"how": how, "milliseconds": [round(one, 3) for one in times[::5]]}) + "\n")


async def measure_many(place: str) -> float:
    """Seconds until all of them have run a command."""
    began = time.perf_counter()
    async with contextlib.AsyncExitStack() as stack:

        async def start() -> None:
            computer = await stack.enter_async_context(Computer.start(on=place, limits=SMALL))
            (await computer.run(["/bin/true"])).check()

        await asyncio.gather(*(start() for _ in range(MANY)))
        return time.perf_counter() - began


async def measure_map(place: str, folder: Path, count: int) -> tuple[float, float]:
    """Seconds of `count` short tasks through `map` there, and through a pool here."""
    script = folder / "work.sh"
    script.write_text(SCRIPT)
    inputs = [folder / f"{number}.txt" for number in range(count)]
    for path in inputs:
        path.write_text(path.name * 10)
    here = await run_plain(inputs)
    began = time.perf_counter()
    summary = await Computer.map(script, inputs, into=folder / "out", parallel=PARALLEL, on=place, limits=SMALL)
    there = time.perf_counter() - began
    if not summary.is_done:
        raise RuntimeError(f"{summary.failed} tasks failed and {summary.lost} were lost")
    return there, here


async def measure_files(place: str, folder: Path) -> tuple[float, float]:
    """Seconds until a command there has seen all files, and until what it changed in each of them is here."""
    for number in range(FILES):
        path = folder / f"{number % 50}" / f"{number}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"file {number}\n" * 20)
    began = time.perf_counter()
    async with Computer.start(folder, on=place, limits=SMALL) as computer:
        seen = await computer.run("find . -type f | wc -l")
        there = time.perf_counter() - began
        if int(seen.stdout) != FILES:
            raise RuntimeError(f"{seen.text} of {FILES} files are there")
        (await computer.run("for one in */*.txt; do echo changed >> $one; done")).check()
        began = time.perf_counter()
        await _remote(computer).fetch_files()
        back = time.perf_counter() - began
    if not all(path.read_bytes().endswith(b"changed\n") for path in folder.glob("*/*.txt")):
        raise RuntimeError("not all changes are here")
    return there, back


async def measure_loss(fleet: RunningFleet, folder: Path) -> tuple[float, float]:
    """Seconds from the end of a node until its computer is told lost, and until its work goes on elsewhere."""
    async with _kept(fleet, folder) as (computer, victim):
        began = time.perf_counter()
        fleet.nodes[victim].kill()
        await _remote(computer).wait()
        told = time.perf_counter() - began
        async with Computer.start(folder, on=fleet.place, limits=SMALL) as again:
            if (await again.run("cat kept")).stdout != b"half\n" or _remote(again).node == victim:
                raise RuntimeError("the work does not go on from the last files")
            return told, time.perf_counter() - began


@contextlib.asynccontextmanager
async def _kept(fleet: RunningFleet, folder: Path) -> AsyncIterator[tuple[Computer, str]]:
    """A computer whose files are here, and the name of its node."""
    computer = await Computer.start(folder, on=fleet.place, limits=SMALL)
    try:
        (await computer.run("echo half > kept")).check()
        await _remote(computer).fetch_files()
        yield computer, _remote(computer).node
    finally:
        await computer.close()


def _remote(computer: Computer) -> RemoteMachine:
    if not isinstance(computer.machine, RemoteMachine):
        raise TypeError("it is not on a node")
    return computer.machine


def _compare(name: str, unit: str, pair: tuple[float, float], aim: str, met: bool) -> Figure:
    return Figure(name, pair[0], unit, "here", pair[1], aim, met)


def measure(quick: bool) -> Iterator[Figure]:
    rounds, commands, size, tasks = (5, 50, 20, 40) if quick else (20, 300, 100, 1000)
    with (
        tempfile.TemporaryDirectory(prefix="fh-bench-") as name,
        contextlib.ExitStack() as stack,
        asyncio.Runner() as runner,
    ):
        began = time.perf_counter()
        fleet = stack.enter_context(running_fleet(settings="max_per_session = 0\n", cpus=16, memory="16GiB"))
        yield Figure("a head and two nodes are ready", time.perf_counter() - began, "s")
        memory = measure_memory(fleet)
        aim = f"less than {MAX_MEMORY} MB"
        yield Figure("their memory (PSS)", memory, "MB", "three nodes of Ray", None, aim, memory < MAX_MEMORY)
        folders = [Path(name) / part for part in ("map", "files", "loss")]
        for folder in folders:
            folder.mkdir()
        place = fleet.place
        runner.run(measure_start(place, 2))  # the first ones read what the others find in memory
        start = runner.run(measure_start(place, rounds))
        met = start[0] <= MAX_START_RATIO * start[1]
        yield _compare("start to first output", "ms", start, f"at most {MAX_START_RATIO} times", met)
        use = runner.run(measure_use(place, commands, size))
        met = use["warm"][0] <= MAX_WARM_RATIO * use["warm"][1]
        yield _compare("a warm command", "ms", use["warm"], f"at most {MAX_WARM_RATIO} times", met)
        met = use["read"][0] >= MIN_READ_RATIO * use["read"][1]
        yield _compare("read a file", "MB/s", use["read"], f"at least {MIN_READ_RATIO} times", met)
        requests = runner.run(time_requests(place, commands))
        slowest = requests[len(requests) * 99 // 100]
        yield Figure("a request to a node and back", statistics.median(requests), "ms", "99 of 100 within", slowest)
        many = statistics.median(runner.run(measure_many(place)) for _ in range(1 if quick else 5))
        yield Figure(f"{MANY} computers", many, "s", aim=f"at most {MAX_MANY} s", met=many <= MAX_MANY)
        mapped = runner.run(measure_map(place, folders[0], tasks))
        met = mapped[0] <= MAX_MAP_RATIO * mapped[1]
        aim = f"at most {(MAX_MAP_RATIO - 1) * 100:.0f} % over a pool here"
        yield Figure(f"{tasks} short tasks through map", mapped[0], "s", "a pool here", mapped[1], aim, met)
        there, back = runner.run(measure_files(place, folders[1]))
        yield Figure(f"{FILES} files there, first command", there, "s")
        total = there + back
        yield Figure(f"{FILES} files there and back", total, "s", aim=f"at most {MAX_FILES} s", met=total <= MAX_FILES)
        told, again = runner.run(measure_loss(fleet, folders[2]))
        yield Figure("a killed node: told lost", told, "s")
        yield Figure("a killed node: at work elsewhere", again, "s", aim=f"at most {MAX_LOSS} s", met=again <= MAX_LOSS)


if __name__ == "__main__":
    main(__doc__ or "", measure)
