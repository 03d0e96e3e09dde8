"""kill -9 at every transaction of a workflow: no step is done twice, none is left out, and what is uncertain is shown."""

import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from tests.routines.workflow_crash_driver import open_journal, run_driver
from tests.support.postgres import PostgresServer, running_postgres

from freehold.routines.clock import WallClock
from freehold.routines.workflows.records import Workflow
from freehold.routines.workflows.store import WorkflowOrder, WorkflowStore
from freehold.timeline import Timeline

FILE = """
from freehold_workflow import event, gather, sleep, step

def write(name):
    with open("{lines}", "a") as file:
        file.write(name + "\\n")
    return name

async def main(data):
    first = await step(write, "a")
    told = await event("go")
    if data["short"]:
        return [first, told, await step(write, "c", again=True)]
    await sleep(seconds=0)
    rest = await gather(step(write, "b"), step(write, "c", again=True))
    return [first, told, *rest]
"""
MAX_TRANSACTIONS = 120

pytestmark = pytest.mark.shared_processes


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.mark.parametrize("kind", ["timeline", "postgres"])
def test_a_workflow_that_is_killed_at_any_transaction_does_each_step_once(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest, kind: str
) -> None:
    homes = tmp_path_factory.mktemp("homes")
    url = None if kind == "timeline" else request.getfixturevalue("postgres").url
    command = [sys.executable, "-m", "tests.routines.workflow_crash_driver"]
    cwd = Path(__file__).parents[2]
    with subprocess.Popen(command, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as driver:
        outcomes = Counter[str]()
        for number in range(1, MAX_TRANSACTIONS):
            codes = [
                _try(driver, homes / f"{number}-{phase}", number, phase, outcomes, url) for phase in ("before", "after")
            ]
            if codes == [0, 0]:
                break  # there were not so many
        assert driver.stdin is not None
        driver.stdin.close()
    assert number > 8
    # Uncertain only between the begin and the end of a step that may not be repeated.
    assert outcomes["done"] > outcomes["uncertain"] > 0


def _try(
    driver: "subprocess.Popen[str]", home: Path, number: int, phase: str, outcomes: "Counter[str]", url: str | None
) -> int:
    home.mkdir()
    (home / "freehold.toml").write_text("")
    if url is not None:
        (home / "postgres").write_text(url)
    lines = home / "lines"
    (home / "w.py").write_text(FILE.format(lines=lines))
    with opened(home) as store:
        # A transaction of the database and one of the timeline for each change: fewer steps show as much.
        workflow = store.add(WorkflowOrder("w.py", {"short": url is not None}), who="owner")
        store.steps.signal(workflow.id, "go", 7, who="owner")
    code = run_driver(driver, home, number, phase)
    assert code in (0, -signal.SIGKILL)
    assert run_driver(driver, home, 0, "before") == 0
    found = _read(home, workflow)
    outcomes[found.state] += 1
    written = Counter(lines.read_text().split() if lines.exists() else [])
    assert max(written["a"], written["b"]) <= 1
    assert written["c"] <= 2
    if found.state == "uncertain":
        assert "was not begun again" in str(found.error)
        with opened(home) as store:
            store.retry(workflow.id, who="owner")
        assert run_driver(driver, home, 0, "before") == 0
        found = _read(home, workflow)
    assert (found.state, found.result) == ("done", ["a", 7, "c"] if url is not None else ["a", 7, "b", "c"])
    _check_told(home)
    shutil.rmtree(home)
    return code


def _check_told(home: Path) -> None:
    """That the timeline was told of each change once, in order."""
    with Timeline(home / "timeline.db") as timeline:
        kinds = [event.kind for event in timeline.read(kinds=["workflow.*"])]
    assert [kind for kind in kinds if ".step_" not in kind and kind != "workflow.signalled"] in (
        ["workflow.added", "workflow.started", "workflow.done"],
        ["workflow.added", "workflow.started", "workflow.uncertain", "workflow.retried", "workflow.done"],
    )


@contextmanager
def opened(home: Path) -> Iterator[WorkflowStore]:
    with (
        Timeline(home / "timeline.db") as timeline,
        closing(open_journal(home, timeline, is_dying=False)) as journal,
    ):
        journal.prepare()
        yield WorkflowStore(journal, WallClock())


def _read(home: Path, workflow: Workflow) -> Workflow:
    with opened(home) as store:
        return store.get(workflow.id)
