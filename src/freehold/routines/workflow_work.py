"""Work that is a workflow. Its id is made of the run's, so it begins once."""

import json
from contextlib import suppress

from freehold.errors import FreeholdError
from freehold.routines.records import Routine, RoutineRun
from freehold.routines.run_store import RunEnd
from freehold.routines.workflows.records import Workflow
from freehold.routines.workflows.service import WorkflowService
from freehold.routines.workflows.store import WorkflowOrder


class WorkflowWork:
    def __init__(self, workflows: WorkflowService) -> None:
        self._workflows = workflows

    async def begin(self, routine: Routine, run: RoutineRun) -> RunEnd | None:
        spec = routine.spec
        assert spec.workflow is not None
        await self._workflows.wait_ready()
        order = WorkflowOrder(spec.workflow, run.data, spec.budget, spec.asks, spec.sha256, run.id)
        order = self._workflows.complete_order(order)
        who, id = f"routine:{routine.name}", workflow_id(run)
        await self._workflows.store.journal.run(lambda: self._workflows.store.add(order, who=who, id=id))
        return None

    async def recover(self, routine: Routine, run: RoutineRun) -> RunEnd | None:
        """A workflow recovers by itself; one that was never stored is begun."""
        return await self.begin(routine, run)

    async def settle(self, run: RoutineRun) -> RunEnd | None:
        found = await self._find(run)
        if found is None or found.finished is None:
            return None
        if found.state == "done":
            result = found.result
            text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
            return RunEnd("done", text, cost=found.cost, quiet=result is None)
        state = {"cancelled": "cancelled", "uncertain": "uncertain"}.get(found.state, "failed")
        return RunEnd(state, error=found.error, cost=found.cost)  # type: ignore[arg-type] # one of the states of a run

    async def measure_cost(self, run: RoutineRun) -> float | None:
        return await self._workflows.store.journal.run(self._workflows.store.sum_cost, workflow_id(run))

    async def stop(self, run: RoutineRun, reason: str) -> None:
        with suppress(FreeholdError):
            await self._workflows.cancel(workflow_id(run), f"routine:{run.routine}", reason)

    async def _find(self, run: RoutineRun) -> Workflow | None:
        await self._workflows.wait_ready()
        return await self._workflows.store.journal.run(self._workflows.store.find, workflow_id(run))


def workflow_id(run: RoutineRun) -> str:
    return f"{run.id}-{run.attempt}"
