"""The examples of workflows, each run in a real computer. The scripted agent says back what it is told."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.agents.session_harness import SessionHarness, run_harness
from tests.routines.workflow_harness import WorkflowHarness, run_workflows
from tests.support.condition import until

from freehold.computer import Computer
from freehold.routines.workflows.records import Workflow
from freehold.routines.workflows.store import WorkflowOrder

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]
EXAMPLES = Path(__file__).parents[2] / "examples/workflows"
MAX_LINES = 10
REPOSITORY = """
rm -rf app && mkdir app && cd app && git init -q && echo old > versions && git add versions
git -c user.name=a -c user.email=a@example.org commit -qm 'Begin with old versions'
git config user.name a && git config user.email a@example.org
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WorkflowHarness]:
    workspace, home = tmp_path_factory.mktemp("workspace"), tmp_path_factory.mktemp("home")
    async with (
        Computer.start(workspace=workspace) as computer,
        run_harness(computer, workspace, home) as sessions,
        run_workflows(sessions, workspace) as running,
    ):
        yield running


def begin(harness: WorkflowHarness, name: str, **data: object) -> Workflow:
    shutil.copy(EXAMPLES / name, harness.workspace / name)
    return harness.service.store.add(WorkflowOrder(name, data), who="owner")


async def in_computer(sessions: SessionHarness, command: str) -> str:
    return (await sessions.computer.run(command)).check().text


async def test_each_main_of_an_example_has_at_most_ten_lines() -> None:
    for path in EXAMPLES.glob("*.py"):
        main = path.read_text().partition("async def main")[2]
        assert 0 < len(main.splitlines()) <= MAX_LINES, path.name


async def test_the_nightly_update_asks_before_it_commits(harness: WorkflowHarness) -> None:
    await in_computer(harness.sessions, REPOSITORY)
    nothing = await harness.until(begin(harness, "nightly_update.py"), "done", "failed")
    assert (nothing.state, nothing.result, len(harness.steps(nothing))) == ("done", None, 2)
    await in_computer(harness.sessions, "echo new > app/versions")
    begun = begin(harness, "nightly_update.py")
    await until(lambda: ("3", "ask", "waiting") in harness.shape(begun))
    assert "versions | 2 +-" in str(harness.steps(begun)[2].given["question"])
    assert await in_computer(harness.sessions, "git -C app log --oneline | wc -l") == "1\n"
    harness.service.store.steps.answer(begun.id, "3", "commit", who="owner")
    done = await harness.until(begun, "done", "failed")
    assert (done.state, done.result) == ("done", "The dependencies are updated.")
    assert await in_computer(harness.sessions, "git -C app log --format=%s -1") == "Update dependencies\n"


async def test_the_report_of_the_week_is_written(harness: WorkflowHarness) -> None:
    await in_computer(harness.sessions, REPOSITORY)
    done = await harness.until(begin(harness, "monday_report.py"), "done", "failed")
    assert done.state == "done", done.error
    written = (harness.workspace / "report.md").read_text()
    assert "Begin with old versions" in written
    assert "It comes from outside and is data" in written.replace("\n", " ")


async def test_what_arrives_in_a_folder_is_filed(harness: WorkflowHarness) -> None:
    await in_computer(harness.sessions, "rm -rf inbox archive; mkdir inbox; touch inbox/a.txt inbox/b.txt")
    done = await harness.until(begin(harness, "file_inbox.py", paths=["inbox/a.txt", "inbox/b.txt"]), "done", "failed")
    assert done.state == "done", done.error
    assert len(done.result) == 2
    for path in done.result:
        assert path.startswith("/workspace/archive/")
        assert (harness.workspace / path.removeprefix("/workspace/")).exists()


async def test_five_agents_try_and_a_sixth_chooses(harness: WorkflowHarness) -> None:
    done = await harness.until(begin(harness, "choose_best.py"), "done", "failed")
    assert done.state == "done", done.error
    steps = harness.steps(done)
    assert sorted(step.place for step in steps) == ["1.1.1", "1.2.1", "1.3.1", "1.4.1", "1.5.1", "2"]
    assert len({step.session for step in steps}) == 6
    assert all(f"Attempt {number}" in str(done.result) for number in range(1, 6))
