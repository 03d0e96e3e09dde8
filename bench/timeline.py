"""How fast is an acknowledged event, beside a bare SQLite insert with the same durability?"""

import asyncio
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import aclosing, closing
from pathlib import Path

from bench.harness import Figure, main
from freehold.timeline import Json, Timeline

DATA: dict[str, Json] = {"host": "registry.code.test", "method": "GET", "path": "/react", "status": 200, "bytes": 48123}
RAW_ROW = (
    "2026-01-01T00:00:00.000Z",
    "egress.request_allowed",
    "agent:claude",
    '{"x":"' + "y" * 80 + '"}',
    "0" * 64,
    "0" * 64,
)

# Both wait for a line on stdin, so that the processes start to write together.
APPENDER = """
import sys
from freehold.timeline import Timeline
timeline = Timeline(sys.argv[1])
print("ready", flush=True); sys.stdin.readline()
for number in range(int(sys.argv[2])):
    timeline.append("egress.request_allowed", {"number": number}, who="agent:claude")
"""


def raw(path: Path, count: int) -> float:
    """Inserts a second: one row of the same size a transaction, WAL, synchronous=FULL."""
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("CREATE TABLE event (seq INTEGER PRIMARY KEY, at, kind, who, data, previous, hash)")
        start = time.perf_counter()
        for _ in range(count):
            database.execute("BEGIN IMMEDIATE")
            database.execute("INSERT INTO event VALUES (NULL, ?, ?, ?, ?, ?, ?)", RAW_ROW)
            database.execute("COMMIT")
        return count / (time.perf_counter() - start)


def appended(path: Path, count: int) -> float:
    with Timeline(path) as timeline:
        start = time.perf_counter()
        for _ in range(count):
            timeline.append("egress.request_allowed", DATA, who="agent:claude")
        return count / (time.perf_counter() - start)


def appended_by(processes: int, path: Path, count: int) -> float:
    command = [sys.executable, "-c", APPENDER, str(path), str(count)]
    writers = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(processes)]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.readline()
    start = time.perf_counter()
    for writer in writers:
        _go(writer)
    for writer in writers:
        writer.wait()
    took = time.perf_counter() - start
    for writer in writers:
        writer.communicate()
    return processes * count / took


async def follow_latency(path: Path, rounds: int) -> tuple[float, float]:
    """Median milliseconds from an acknowledged append to the follower, and processor share of an idle follower."""
    waits = []
    with Timeline(path) as timeline:
        last = await asyncio.to_thread(timeline.append, "bench.started")
        async with aclosing(timeline.follow(last.seq - 1)) as events:
            await anext(events)
            for _ in range(rounds):
                pending = asyncio.ensure_future(anext(events))
                await asyncio.sleep(0.07)
                await asyncio.to_thread(timeline.append, "bench.asked")
                start = time.perf_counter()
                await pending
                waits.append((time.perf_counter() - start) * 1000)
            pending = asyncio.ensure_future(anext(events))
            busy, start = time.process_time(), time.perf_counter()
            await asyncio.sleep(2)
            share = (time.process_time() - busy) / (time.perf_counter() - start)
            await asyncio.to_thread(timeline.append, "bench.ended")
            await pending
    return statistics.median(waits), share * 100


def measure(quick: bool) -> Iterator[Figure]:
    count = 1000 if quick else 5000
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_FOLDER")) as name:
        folder = Path(name)
        # In turns, so that a busy moment of the machine hits both.
        pairs = [(appended(folder / f"a{n}.db", count), raw(folder / f"r{n}.db", count)) for n in range(3)]
        ours, bare = (statistics.median(column) for column in zip(*pairs, strict=True))
        aim = "at least half of raw SQLite"
        yield Figure("acknowledged appends, one process", ours, "/s", "raw SQLite", bare, aim, ours >= bare / 2)
        together = appended_by(4, folder / "four.db", count // 4)
        yield Figure("acknowledged appends, four processes", together, "/s", "one process", ours)
        with Timeline(folder / "batch.db") as timeline:
            start = time.perf_counter()
            with timeline.transaction() as tx:
                for _ in range(count * 4):
                    tx.append("egress.request_allowed", DATA)
            yield Figure("appends in one transaction", count * 4 / (time.perf_counter() - start), "/s")
            start = time.perf_counter()
            problems = timeline.verify()
            assert problems == []
            yield Figure("entries verified", count * 4 / (time.perf_counter() - start), "/s")
        latency, share = asyncio.run(follow_latency(folder / "follow.db", 10 if quick else 50))
        yield Figure("append to follower, median", latency, "ms", aim="under 60 ms", met=latency < 60)
        yield Figure("idle follower", share, "% CPU")


def _go(writer: "subprocess.Popen[bytes]") -> None:
    assert writer.stdin is not None
    writer.stdin.write(b"go\n")
    writer.stdin.flush()


if __name__ == "__main__":
    main(__doc__ or "", measure)
