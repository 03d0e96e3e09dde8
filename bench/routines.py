"""What do routines cost while they sleep, and how late do they begin? Beside the same process without any.

Figures depend on what else the machine does: look at the load first.
"""

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from tests.agents.session_harness import SessionHarness
from tests.routines.crash_driver import LineWork
from tests.support.condition import until

from bench.harness import Figure, main
from freehold.computer import Computer
from freehold.routines.clock import WallClock
from freehold.routines.records import Routine, RoutineRun
from freehold.routines.routine_store import RoutineStore
from freehold.routines.run_store import RunEnd
from freehold.routines.section import RoutineSection
from freehold.routines.service import RoutineService
from freehold.timeline import Timeline

SLEEPING = 10_000
AT_ONCE = 100
MEMORY_AIM = 5.0
"""MB for all of them."""
START_AIM = 50.0
"""Milliseconds from due to started, at the 95th percentile."""
PROCESSOR_AIM = 0.1
"""Percent of one core. What is below cannot be told from the noise of the clock."""


class TimedWork(LineWork):
    """Notes when each run began."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.delays: list[float] = []

    async def begin(self, routine: Routine, run: RoutineRun) -> RunEnd | None:
        self.delays.append((time.time() - run.due) * 1000)
        return RunEnd("done")


async def open_service(group: asyncio.TaskGroup, home: Path) -> tuple[RoutineService, TimedWork]:
    computer: Computer = None  # type: ignore[assignment] # no work of this benchmark needs one
    sessions = SessionHarness(computer, home, 600.0)
    await sessions.start(group)
    service = RoutineService(sessions.sessions, {})
    work = TimedWork(home / "lines.txt")
    service._works["command"] = work
    group.create_task(service.run())
    await service.ready.wait()
    return service, work


def fill(home: Path, count: int) -> None:
    """Routines of every kind of schedule, none of which is due soon."""
    (home / "freehold.toml").write_text("")
    specs = (
        RoutineSection(cron="0 7 1 1 *", zone="Europe/Berlin", command="true"),
        RoutineSection(every=366 * 86400, command="true"),
        RoutineSection(at="2999-01-01T00:00", command="true"),
    )
    with Timeline(home / "timeline.db") as timeline:
        store = RoutineStore(timeline, WallClock())
        store.prepare()
        store.adopt_manifest({f"r{number:05}": specs[number % len(specs)] for number in range(count)})
        with timeline.transaction() as tx:  # they stay when the service starts without a manifest
            tx.execute("UPDATE routines_routine SET source = 'owner'")


async def sleep_and_report(home: Path, seconds: float) -> None:
    """The part of the child: its memory and its processor time while nothing is due."""
    async with asyncio.TaskGroup() as group:
        await open_service(group, home)
        await asyncio.sleep(1.0)
        before = resource.getrusage(resource.RUSAGE_SELF)
        await asyncio.sleep(seconds)
        after = resource.getrusage(resource.RUSAGE_SELF)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        print(json.dumps({"memory": pages * os.sysconf("SC_PAGE_SIZE") / 1e6, "processor": 100 * used / seconds}))
        sys.stdout.flush()
        os._exit(0)


def measure_sleep(count: int, seconds: float) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder), count)
        command = [sys.executable, "-m", "bench.routines", "sleep", folder, str(seconds)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1])
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


async def measure_starts(rounds: int) -> list[float]:
    """All of them are due at the same moment."""
    delays: list[float] = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            fill(home, 0)
            async with asyncio.TaskGroup() as group:
                service, work = await open_service(group, home)
                moment = time.time() + 2.0
                text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{int(moment % 1 * 1e6):06}+00:00"
                for number in range(AT_ONCE):
                    service.routines.add(f"r{number}", RoutineSection(at=text, command="true"), who="owner")
                await until(lambda work=work: len(work.delays) == AT_ONCE)  # type: ignore[misc]
                delays += work.delays
                for task in asyncio.all_tasks() - {asyncio.current_task()}:
                    task.cancel()
    return delays


def measure(quick: bool) -> Iterator[Figure]:
    seconds = 5.0 if quick else 30.0
    empty, full = measure_sleep(0, seconds), measure_sleep(SLEEPING, seconds)
    memory = full["memory"] - empty["memory"]
    yield Figure(
        f"memory of {SLEEPING:,} routines that sleep",
        memory,
        "MB",
        "the process without any:",
        empty["memory"],
        f"< {MEMORY_AIM:g} MB",
        memory < MEMORY_AIM,
    )
    processor = full["processor"] - empty["processor"]
    yield Figure(
        f"processor of {SLEEPING:,} routines that sleep",
        processor,
        "%",
        "the process without any:",
        empty["processor"],
        f"< {PROCESSOR_AIM:g} % of a core",
        processor < PROCESSOR_AIM,
    )
    delays = sorted(asyncio.run(measure_starts(1 if quick else 5)))
    late = delays[int(len(delays) * 0.95)]
    yield Figure(
        f"due to started, p95 of {AT_ONCE} at once",
        late,
        "ms",
        "the median:",
        delays[len(delays) // 2],
        f"≤ {START_AIM:g} ms",
        late <= START_AIM,
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["sleep"]:
        asyncio.run(sleep_and_report(Path(sys.argv[2]), float(sys.argv[3])))
    main(__doc__ or "", measure)
