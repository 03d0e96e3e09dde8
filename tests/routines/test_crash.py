"""kill -9 at any point: no run is started twice, and none is lost."""

import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest
from tests.routines.conftest import SetClock
from tests.routines.workflow_crash_driver import run_driver
from tests.support.condition import wait_until

from freehold.routines.clock import WallClock
from freehold.routines.routine_store import RoutineStore
from freehold.routines.run_store import RunStore
from freehold.routines.section import RoutineSection
from freehold.timeline import Timeline

ROUTINES = 20
KILLS = 5
EACH = 40
PHASES = ("before", "after")


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


def test_a_prompt_that_is_due_is_sent_once_whenever_freehold_is_killed(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """At every transaction between its time and its end: also claimed and not sent, and sent and not noted."""
    homes, outcomes, number = tmp_path_factory.mktemp("homes"), Counter[str](), 0
    command = [sys.executable, "-m", "tests.routines.prompt_crash_driver"]
    cwd = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as driver:
        is_killed = True
        while is_killed:
            number += 1
            both = [_kill_once(driver, homes / f"{number}-{phase}", number, phase, outcomes) for phase in PHASES]
            is_killed = any(both)
        assert driver.stdin is not None
        driver.stdin.close()
    assert number > 8
    # Uncertain only between the prompt and the end of its turn.
    assert outcomes["done"] > outcomes["uncertain"] > 0


def _kill_once(driver: "subprocess.Popen[str]", home: Path, number: int, phase: str, outcomes: "Counter[str]") -> bool:
    """Returns whether there were so many transactions."""
    home.mkdir()
    (home / "freehold.toml").write_text('[agents]\ndefault = "double"\n[agents.double]\ncommand = "true"\n')
    with _opened(home) as runs:
        runs.routines.add("r", RoutineSection(cron="0 * * * *", prompt="Look"), who="owner")
    code = run_driver(driver, home, number, phase)
    assert code in (0, -signal.SIGKILL)
    assert run_driver(driver, home, 0, "before") == 0
    with _opened(home) as runs:
        (run,) = runs.list_runs("r")
    sent = (home / "prompts").read_text().split()
    assert sent == [run.prompt_key] or (sent == [] and run.state == "uncertain")
    assert run.state in ("done", "uncertain")
    outcomes[run.state] += 1
    return code != 0


@contextmanager
def _opened(home: Path) -> Iterator[RunStore]:
    with Timeline(home / "timeline.db") as timeline:
        routines = RoutineStore(timeline, SetClock())
        routines.prepare()
        yield RunStore(routines)


def _has_grown(lines: Path, before: int) -> bool:
    return lines.stat().st_size > before


def _driver(home: Path, lines: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "tests.routines.crash_driver", str(home), str(lines)]
    return subprocess.Popen(command, cwd=Path(__file__).parents[2])
