"""kill -9 at any point: no run is started twice, and none is lost."""

import random
import subprocess
import sys
import time
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from tests.support.condition import wait_until

from freehold.routines.clock import WallClock
from freehold.routines.routine_store import RoutineStore
from freehold.routines.run_store import RunStore
from freehold.routines.section import RoutineSection
from freehold.timeline import Timeline

ROUTINES = 20
KILLS = 5
EACH = 40


def test_a_process_that_is_killed_again_and_again_starts_no_run_twice_and_loses_none(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    home = tmp_path_factory.mktemp("home")
    (home / "freehold.toml").write_text("")
    lines = home / "lines.txt"
    lines.touch()
    chance = random.Random(18)
    with Timeline(home / "timeline.db") as timeline:
        routines = RoutineStore(timeline, WallClock())
        routines.prepare()
        runs = RunStore(routines)
        spec = RoutineSection(command="true", webhook=True, overlap="queue", most_per_hour=3600)
        for number in range(ROUTINES):
            routines.add(f"r{number}", spec, who="owner")
        wanted = 0
        for _ in range(KILLS):
            before = lines.stat().st_size
            with _driver(home, lines) as driver:
                for _ in range(EACH):
                    runs.trigger(f"r{wanted % ROUTINES}", f"webhook:{wanted}", {})
                    wanted += 1
                wait_until(partial(_has_grown, lines, before))
                time.sleep(chance.uniform(0, 0.05))  # any point is right
                driver.kill()
        with _driver(home, lines) as driver:
            wait_until(lambda: all(run.finished is not None for run in runs.list_runs(limit=10_000)))
            driver.kill()
        found = runs.list_runs(limit=10_000)
    written = Counter(lines.read_text().split())
    assert len(found) == wanted == len({run.cause for run in found})
    assert {run.state for run in found} <= {"done", "uncertain"}
    assert max(written.values()) == 1
    assert {run.id for run in found if run.state == "done"} <= written.keys()
    assert len([run for run in found if run.state == "uncertain"]) <= KILLS * ROUTINES


def _has_grown(lines: Path, before: int) -> bool:
    return lines.stat().st_size > before


def _driver(home: Path, lines: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "tests.routines.crash_driver", str(home), str(lines)]
    return subprocess.Popen(command, cwd=Path(__file__).parents[2])
