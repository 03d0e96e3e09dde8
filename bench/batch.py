"""What does `Computer.map` cost over a plain pool: its journal, its results on the disk, its retries?

Short tasks, each in a sealed computer of its own. The peer does the same through `Computer.pool`: as many workers take a
computer, send the same script and input, run it and keep the output in memory. Both take turns, so that what else the
machine does meanwhile meets both.
"""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from bench.harness import Figure, main
from freehold.computer import Computer
from freehold.computer.batch.script_work import INPUT_FOLDER, SCRIPT_FOLDER

TASKS = 1000
MAX_RATIO = 1.15
SCRIPT = 'wc -c < "$1"\n'
PARALLEL = len(os.sched_getaffinity(0))


async def run_plain(inputs: list[Path]) -> float:
    """Seconds for all inputs through a pool."""
    waiting = list(reversed(inputs))
    found: list[bytes] = []
    begin = time.perf_counter()

    async def work() -> None:
        while waiting:
            path = waiting.pop()
            script, given = f"{SCRIPT_FOLDER}/work.sh", f"{INPUT_FOLDER}/{path.name}"
            async with pool.checkout() as computer:
                await computer.files.write_many({script: SCRIPT.encode(), given: path.read_bytes()})
                found.append((await computer.run(["/bin/sh", script, given])).check().stdout)

    async with Computer.pool(PARALLEL) as pool, asyncio.TaskGroup() as group:
        for _ in range(PARALLEL):
            group.create_task(work())
    if len(found) != len(inputs):
        raise RuntimeError(f"{len(found)} of {len(inputs)} outputs")
    return time.perf_counter() - begin


async def run_map(script: Path, inputs: list[Path], into: Path) -> float:
    """Seconds for all inputs through `map`."""
    begin = time.perf_counter()
    summary = await Computer.map(script, inputs, into=into, parallel=PARALLEL)
    if not summary.is_done:
        raise RuntimeError(f"{summary.failed} tasks failed and {summary.lost} were lost")
    return time.perf_counter() - begin


async def compare(folder: Path, count: int, rounds: int) -> tuple[list[float], list[float]]:
    script = folder / "work.sh"
    script.write_text(SCRIPT)
    inputs = [folder / f"{number}.txt" for number in range(count)]
    for path in inputs:
        path.write_text(path.name * 10)
    plain, mapped = [], []
    await run_plain(inputs[:PARALLEL])  # the first one reads what the others find in memory
    for number in range(rounds):
        plain.append(await run_plain(inputs))
        mapped.append(await run_map(script, inputs, folder / f"out-{number}"))
    return plain, mapped


async def measure_return(folder: Path) -> float:
    """Seconds in which a batch that is done says so: the journal is read, and nothing begins."""
    inputs = sorted(folder.glob("*.txt"), key=lambda path: int(path.stem))
    return await run_map(folder / "work.sh", inputs, folder / "out-0")


def measure(quick: bool) -> Iterable[Figure]:
    count, rounds = (TASKS // 20, 5) if quick else (TASKS, 1)
    with tempfile.TemporaryDirectory() as name:
        plain, mapped = asyncio.run(compare(Path(name), count, rounds))
        again = asyncio.run(measure_return(Path(name)))
    peer, own = (statistics.median(times) / count * 1000 for times in (plain, mapped))
    ratio = statistics.median(own / peer for own, peer in zip(mapped, plain, strict=True))
    yield Figure("a short task through map", own, "ms", "through a pool", peer)
    aim = f"at most {(MAX_RATIO - 1) * 100:.0f} % over a pool"
    yield Figure(
        "map over a pool", (ratio - 1) * 100, "%", f"{count} tasks, {PARALLEL} at once", None, aim, ratio <= MAX_RATIO
    )
    yield Figure(f"a batch of {count} that is done, asked again", again * 1000, "ms")


if __name__ == "__main__":
    main(__doc__ or "", measure)
