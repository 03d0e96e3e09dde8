"""Work that is a workflow. Its id is made of the run's, so it begins once."""

import json
from contextlib import suppress
from dataclasses import replace

from freehold.agents.threads import run_blocking
from freehold.errors import FreeholdError
from freehold.routines.records import ROUTINE, Routine, RoutineRun
from freehold.routines.run_changes import RunEnd
from freehold.routines.run_store import RunStore
from freehold.routines.workflows.records import Workflow
from freehold.routines.workflows.service import WorkflowService
from freehold.routines.workflows.store import WorkflowOrder

MOVED = (
    "Its workflow is not where workflows are stored now: [workflows.postgres] was changed while it ran. It was not begun"
    " again: look at what it has done"
)


class WorkflowWork:
    def __init__(self, workflows: WorkflowService, runs: RunStore) -> None:
        self._workflows = workflows
        self._runs = runs

    async def begin(self, routine: Routine, run: RoutineRun) -> RunEnd | None:
        spec = routine.spec
        assert spec.workflow is not None
        await self._workflows.wait_ready()
        order = WorkflowOrder(spec.workflow, run.data, spec.budget, spec.asks, spec.sha256, run.id)
        order = self._workflows.complete_order(order)
        most = await run_blocking(self._runs.find_most, routine, run)
        order = replace(order, budget=min((one for one in (order.budget, most) if one is not None), default=None))
        who, id = f"{ROUTINE}{routine.name}", workflow_id(run)
        await self._workflows.store.journal.run(lambda: self._workflows.store.add(order, who=who, id=id))
        return None

    async def recover(self, routine: Routine, run: RoutineRun) -> RunEnd | None:
        """A workflow recovers by itself; one that was never stored is begun."""
        if await self._find(run) is None and await run_blocking(self._was_added, run):
            return RunEnd("uncertain", error=MOVED)
        return await self.begin(routine, run)

    async def settle(self, run: RoutineRun) -> RunEnd | None:
        found = await self._find(run)
        if found is not None and found.finished is not None and found.state != "done":
            found = await self._find_stopped(run)
        if found is None or found.finished is None:
            return None
        if found.state == "done":
            result = found.result
            text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
            return RunEnd("done", text, cost=found.cost, quiet=result is None)
        state = {"cancelled": "cancelled", "uncertain": "uncertain"}.get(found.state, "failed")
        return RunEnd(state, error=found.error, cost=found.cost)  # type: ignore[arg-type] # one of the states of a run

    async def measure_cost(self, run: RoutineRun) -> float | None:
        found = await self._find(run)
        return None if found is None else found.cost

    async def stop(self, run: RoutineRun, reason: str) -> None:
        with suppress(FreeholdError):
            await self._workflows.cancel(workflow_id(run), f"routine:{run.routine}", reason)
            await self._workflows.wait_stopped(workflow_id(run))

    async def _find_stopped(self, run: RoutineRun) -> Workflow | None:
        """When the agents have ended that its end cuts off: only then all of their cost is known."""
        with suppress(FreeholdError):
            await self._workflows.wait_stopped(workflow_id(run))
        return await self._find(run)

    def _was_added(self, run: RoutineRun) -> bool:
        """Whether the timeline knows its workflow, wherever that was stored."""
        timeline, after = self._runs.routines.timeline, 0
        while events := timeline.read(after, kinds=["workflow.added"]):
            if any(event.data.get("workflow") == workflow_id(run) for event in events):
                return True
            after = events[-1].seq
        return False

    async def _find(self, run: RoutineRun) -> Workflow | None:
        await self._workflows.wait_ready()
        return await self._workflows.store.journal.run(self._workflows.store.find, workflow_id(run))


def workflow_id(run: RoutineRun) -> str:
    return f"{run.id}-{run.attempt}"


def run_of(workflow: str) -> str:
    """The id of the run that a workflow belongs to, if it belongs to one."""
    return workflow.rpartition("-")[0]
