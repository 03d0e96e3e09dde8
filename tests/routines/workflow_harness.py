"""Workflows on a real service of sessions in a real computer, with a scripted agent and a clock that is set."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from textwrap import dedent
from typing import Any

from tests.agents.session_harness import SessionHarness
from tests.routines.conftest import SetClock
from tests.support.condition import until

from freehold.routines.workflows.records import Workflow, WorkflowStep
from freehold.routines.workflows.section import WorkflowsSection
from freehold.routines.workflows.service import WorkflowService
from freehold.routines.workflows.store import WorkflowOrder

LIBRARY = "from freehold_workflow import StepFailed, agent, ask, command, event, gather, sleep, step\n"


class WorkflowHarness:
    """`crash` ends everything in memory at once, and starts again on what is stored."""

    def __init__(self, sessions: SessionHarness, workspace: Path, clock: SetClock) -> None:
        self.sessions = sessions
        self.workspace = workspace
        self.clock = clock
        self.section = WorkflowsSection()

    async def start(self, group: asyncio.TaskGroup, grace: float) -> None:
        self._group, self._grace = group, grace
        self.service = WorkflowService(self.sessions.sessions, self.section, clock=self.clock, grace=grace, linger=0.05)
        self._task = group.create_task(self.service.run())
        await self.service.ready.wait()

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def crash(self) -> None:
        await self.stop()
        await self.sessions.restart()
        await self.start(self._group, self._grace)

    def write(self, text: str, file: str = "w.py") -> None:
        path = self.workspace / file
        path.write_text(LIBRARY + dedent(text))
        path.chmod(0o644)

    def begin(self, text: str, file: str = "w.py", **order: Any) -> Workflow:
        """A file with this text, begun."""
        self.write(text, file)
        data = order.pop("data", {})
        return self.service.store.add(WorkflowOrder(file, data, **order), who="owner")

    async def until(self, workflow: Workflow, *states: str) -> Workflow:
        """The workflow, when it is in one of these states."""

        def find() -> Workflow | None:
            found = self.service.store.get(workflow.id)
            return found if found.state in states else None

        found = await until(find)
        assert found is not None
        return found

    async def finish(self, text: str, **order: Any) -> Workflow:
        """A workflow with this text, when it has ended."""
        begun = self.begin(text, **order)
        return await self.until(begun, "done", "failed", "uncertain", "changed", "cancelled")

    def steps(self, workflow: Workflow) -> list[WorkflowStep]:
        return self.service.store.steps.list_steps(workflow.id)

    def shape(self, workflow: Workflow) -> list[tuple[str, str, str]]:
        return [(step.place, step.kind, step.state) for step in self.steps(workflow)]


@asynccontextmanager
async def run_workflows(
    sessions: SessionHarness, workspace: Path, *, grace: float = 60.0
) -> AsyncIterator[WorkflowHarness]:
    harness = WorkflowHarness(sessions, workspace, SetClock())
    async with asyncio.TaskGroup() as group:
        await harness.start(group, grace)
        try:
            yield harness
        finally:
            await harness.stop()
