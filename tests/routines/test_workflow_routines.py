"""Routines whose work is a workflow."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.agents.session_harness import SessionHarness, run_harness
from tests.routines.service_harness import RoutineHarness
from tests.routines.workflow_harness import WorkflowHarness, run_workflows
from tests.support.condition import until

from freehold.computer import Computer
from freehold.routines.records import RoutineRun
from freehold.routines.section import RoutineSection
from freehold.routines.service import RoutineService
from freehold.routines.workflows.records import digest_source

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.shared_processes]


class Both(RoutineHarness):
    """Routines and workflows that share sessions and a clock."""

    def __init__(self, sessions: SessionHarness, workflows: WorkflowHarness) -> None:
        super().__init__(sessions, workflows.clock)
        self.workflows = workflows

    async def open(self) -> None:
        self.service = RoutineService(self.sessions.sessions, {}, clock=self.clock, workflows=self.workflows.service)
        self._task = self.workflows._group.create_task(self.service.run())
        await self.service.ready.wait()

    async def crash(self) -> None:
        await self.stop()
        await self.workflows.crash()
        await self.open()

    def put(self, text: str, **spec: object) -> RoutineRun:
        self.workflows.write(text)
        given = RoutineSection.model_validate({"webhook": True, "workflow": "w.py", **spec})
        self.service.routines.add("r", given, who="owner", replace=True)
        return self.run_now("r", f"manual:{self.clock.now()}", number=7)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def both(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Both]:
    workspace: Path = tmp_path_factory.mktemp("workspace")
    async with (
        Computer.start(workspace=workspace) as computer,
        run_harness(computer, workspace, tmp_path_factory.mktemp("home")) as sessions,
        run_workflows(sessions, workspace) as workflows,
    ):
        harness = Both(sessions, workflows)
        await harness.open()
        yield harness
        await harness.stop()


async def test_a_workflow_gets_what_the_trigger_tells_and_its_result_is_that_of_the_run(both: Both) -> None:
    run = await both.until(both.put("async def main(data):\n    return f'Number {data[\"number\"]}'"), "done", "failed")
    assert (run.state, run.result, run.quiet) == ("done", "Number 7", False)
    both.clock.forward(1)
    run = await both.until(both.put("async def main(data):\n    return None"), "done", "failed")
    assert (run.state, run.quiet) == ("done", True)


async def test_a_workflow_that_waits_for_days_is_no_run_that_takes_too_long(both: Both) -> None:
    both.clock.forward(1)
    run = both.put("async def main(data):\n    await sleep(days=3)\n    return 'slept'", longest=1)
    id = f"{run.id}-1"
    await until(lambda: (found := both.workflows.service.store.find(id)) is not None and found.state == "waiting")
    await both.crash()
    both.clock.forward(3 * 86400 + 1)
    ended = await both.until(run, "done", "failed")
    assert (ended.state, ended.result) == ("done", "slept")
    assert both.workflows.service.store.get(id).who == "routine:r"


async def test_a_workflow_that_fails_is_tried_again_as_a_new_one(both: Both) -> None:
    both.clock.forward(1)
    run = both.put("async def main(data):\n    await command('exit 3')", retries=1, retry_delay=60)
    await until(lambda: both.service.runs.get(run.id).attempt == 2)
    both.clock.forward(61)
    failed = await both.until(run, "failed")
    assert str(failed.error).startswith("The command ended with exit code 3")
    store = both.workflows.service.store
    assert [store.get(f"{run.id}-{attempt}").state for attempt in (1, 2)] == ["failed", "failed"]


async def test_a_run_that_is_ended_ends_its_workflow(both: Both) -> None:
    both.clock.forward(1)
    run = both.put("async def main(data):\n    await ask('Go on?')")
    id = f"{run.id}-1"
    await until(lambda: (found := both.workflows.service.store.find(id)) is not None and found.state == "waiting")
    assert (await both.service.cancel(run.id, "owner")).state == "cancelled"
    await until(lambda: both.workflows.service.store.get(id).state == "cancelled")


async def test_a_file_that_changed_after_it_was_approved_does_not_run(both: Both) -> None:
    both.clock.forward(1)
    run = both.put("async def main(data):\n    return 'changed'", sha256=digest_source("what the owner has read"))
    failed = await both.until(run, "done", "failed")
    assert (failed.state, failed.error) == ("failed", "w.py is another text than the one that began")
