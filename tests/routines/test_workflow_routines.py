"""Routines whose work is a workflow."""

import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio
from tests.agents.session_harness import SessionHarness, run_harness
from tests.routines.service_harness import RoutineHarness
from tests.routines.workflow_harness import WorkflowHarness, run_workflows
from tests.support.condition import until

from freehold.computer import Computer
from freehold.egress.models import ModelUsage, TokenCounts
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


async def test_a_workflow_may_cost_what_is_left_of_the_day(both: Both) -> None:
    both.clock.forward(1)
    run = both.put("async def main(data):\n    return 'x'", budget=5.0, budget_day=2.0)
    await both.until(run, "done")
    assert both.workflows.service.store.get(f"{run.id}-1").budget == 2.0


async def test_a_run_that_is_ended_ends_its_workflow(both: Both) -> None:
    both.clock.forward(1)
    run = both.put("async def main(data):\n    await ask('Go on?')")
    id = f"{run.id}-1"
    await until(lambda: (found := both.workflows.service.store.find(id)) is not None and found.state == "waiting")
    assert (await both.service.cancel(run.id, "owner")).state == "cancelled"
    await until(lambda: both.workflows.service.store.get(id).state == "cancelled")


async def test_a_run_whose_workflow_is_in_another_journal_now_is_uncertain_and_not_begun_again(both: Both) -> None:
    """The owner has changed [workflows.postgres] while it waited."""
    both.clock.forward(1)
    run = both.put("async def main(data):\n    await command('echo x >> did')\n    await ask('Go on?')")
    store, id = both.workflows.service.store, f"{run.id}-1"
    await until(lambda: (found := store.find(id)) is not None and found.state == "waiting")
    with both.sessions.timeline.transaction() as tx:
        for table, column in (("workflows_step", "workflow"), ("workflows_workflow", "id")):
            tx.execute(f"DELETE FROM {table} WHERE {column} = ?", (id,))
    await both.crash()
    ended = await both.until(run, "uncertain", "done", "failed", "parked")
    assert (ended.state, "not begun again" in str(ended.error)) == ("uncertain", True)
    assert (both.workflows.workspace / "did").read_text() == "x\n"
    assert both.workflows.service.store.find(id) is None


def agent_text(*steps: object, **options: str) -> str:
    """A call of the scripted agent, as text of Python."""
    return f"await agent({f'[{json.dumps(list(steps))}]'!r}, **{options!r})"


async def put_endless(both: Both, monkeypatch: pytest.MonkeyPatch, **spec: object) -> tuple[RoutineRun, str]:
    """A run whose workflow's agent works without an end, and the workflow's id. An agent has cost 0.50 while it works, and
    0.75 when it has ended: its last request is counted then."""

    async def usage_of(session: str, turn: str | None = None) -> ModelUsage:
        has_begun = any("working" in delta["text"] for delta in both.sessions.watchers.deltas)
        is_over = session not in both.sessions.sessions._runners
        return ModelUsage(1, TokenCounts(), (0.75 if is_over else 0.5) if has_begun else 0.0)

    monkeypatch.setattr(both.sessions.models, "usage_of", usage_of)
    both.clock.forward(1)
    both.sessions.watchers.deltas.clear()
    run = both.put(f"async def main(data):\n    {agent_text({'say': 'working'}, {'hang': 'deaf'})}", **spec)
    await both.sessions.watchers.until_text("working")
    steps = both.workflows.service.store.steps
    await until(lambda: [one for one in steps.list_steps(f"{run.id}-1") if one.turn is not None])
    return run, f"{run.id}-1"


async def test_a_run_that_is_cut_off_counts_with_what_its_workflow_has_cost(
    both: Both, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the run is ended, its workflow is, or that has reached its budget."""
    run, _ = await put_endless(both, monkeypatch)
    assert (await both.service.cancel(run.id, "owner")).cost == 0.75
    run, id = await put_endless(both, monkeypatch)
    await both.workflows.service.cancel(id, "owner")
    ended = await both.until(run, "cancelled")
    assert (ended.error, ended.cost) == ("owner ended it", 0.75)
    run, _ = await put_endless(both, monkeypatch, budget=0.5)
    ended = await both.until(run, "failed")
    assert (ended.error, ended.cost) == ("Its agents have cost 0.50 US dollars, which is its budget", 0.75)


async def test_the_agent_of_a_workflow_is_no_session_of_the_owner(both: Both) -> None:
    """Otherwise a routine with a workflow would begin itself again and again."""
    both.clock.forward(1)
    both.workflows.write(f"async def main(data):\n    {agent_text({'say': 'done'})}\n    return 'done'")
    given = {"after": "session", "workflow": "w.py", "overlap": "queue"}
    both.service.routines.add("r", RoutineSection.model_validate(given), who="owner", replace=True)
    before = len(both.service.runs.list_runs("r", limit=200))

    def has_runs(count: int) -> bool:
        return len(both.service.runs.list_runs("r", limit=200)) >= count

    session = await both.sessions.open()
    for count in (1, 2):
        await both.sessions.run_turn(session, {"say": "mine"})
        await until(partial(has_runs, before + count))
        await both.until(both.service.runs.list_runs("r")[0], "done", "failed")
    assert len(both.service.runs.list_runs("r", limit=200)) == before + 2
    both.service.routines.remove("r", who="owner")


async def test_a_workflow_refuses_only_what_its_own_agents_ask(both: Both) -> None:
    """The owner talks to the agent in the session of the workflow, and is asked there."""
    both.clock.forward(1)
    first = agent_text({"say": "one"}, session="s")
    second = agent_text({"run": "true"}, {"say": "two"}, session="s")
    run = both.put(f"async def main(data):\n    {first}\n    await ask('Go on?')\n    {second}", asks="refuse")
    store, id = both.workflows.service.store, f"{run.id}-1"
    await until(lambda: [one for one in store.steps.list_steps(id) if one.place == "2"])
    session = str(store.steps.list_steps(id)[0].session)
    approvals = both.sessions.sessions.dependencies.approvals.store
    await both.sessions.prompt(session, {"run": "true"}, {"say": "mine"})
    (mine,) = await until(lambda: approvals.list_pending(session))
    store.steps.answer(id, "2", "yes", who="owner")
    await until(lambda: [one for one in store.steps.list_steps(id) if one.place == "3" and one.turn is not None])
    await both.workflows.service._settle(session)
    assert [one.id for one in approvals.list_pending(session)] == [mine.id]
    await both.sessions.sessions.answer(mine.id, "once", who="owner")
    await both.until(run, "done")
    assert both.sessions.text_of(session) == "one[yes]mine[no]two"


async def test_a_file_that_changed_after_it_was_approved_does_not_run(both: Both) -> None:
    both.clock.forward(1)
    run = both.put("async def main(data):\n    return 'changed'", sha256=digest_source("what the owner has read"))
    failed = await both.until(run, "done", "failed")
    assert (failed.state, failed.error) == ("failed", "w.py is another text than the one that began")
