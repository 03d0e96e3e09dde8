"""Routines on a real service of sessions in a real computer, with a scripted agent and a clock that is set."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from tests.agents.session_harness import SessionHarness
from tests.routines.conftest import SetClock
from tests.support.condition import until

from freehold.routines.records import RoutineRun
from freehold.routines.section import RoutineSection
from freehold.routines.service import RoutineService


class RoutineHarness:
    """`crash` ends everything in memory at once, and starts again on what is stored."""

    def __init__(self, sessions: SessionHarness, clock: SetClock) -> None:
        self.sessions = sessions
        self.clock = clock
        self.wanted: Mapping[str, RoutineSection] = {}

    def start(self, group: asyncio.TaskGroup, grace: float) -> None:
        self._group, self._grace = group, grace
        self.service = RoutineService(self.sessions.sessions, self.wanted, clock=self.clock, grace=grace)
        self._task = group.create_task(self.service.run())

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def crash(self) -> None:
        await self.stop()
        await self.sessions.restart()
        self.start(self._group, self._grace)

    async def prepared(self) -> None:
        def is_prepared() -> bool:
            return bool(self.sessions.timeline.query("SELECT 1 FROM room WHERE name = 'routines'"))

        await until(is_prepared)

    async def add(self, name: str = "r", *steps: dict[str, Any], **spec: Any) -> None:
        """A routine with a prompt of these steps, unless it has other work."""
        await self.prepared()
        if not {"command", "checklist", "prompt"} & spec.keys():
            spec["prompt"] = f"[{json.dumps(list(steps))}]"
        self.service.routines.add(name, RoutineSection.model_validate({"every": 3600, **spec}), who="owner")

    async def add_now(self, name: str = "r", *steps: dict[str, Any], **spec: Any) -> RoutineRun:
        """A routine, and its first run."""
        await self.add(name, *steps, **spec)
        return self.run_now(name)

    def run_now(self, name: str = "r", cause: str = "manual:1", **data: Any) -> RoutineRun:
        run = self.service.runs.trigger(name, cause, data, who="owner")
        assert run is not None
        return run

    async def until(self, run: RoutineRun, *states: str) -> RoutineRun:
        """The run, when it is in one of these states."""

        def find() -> RoutineRun | None:
            found = self.service.runs.get(run.id)
            return found if found.state in states else None

        found = await until(find)
        assert found is not None
        return found

    def turns(self, session: str | None) -> int:
        return int(self.sessions.timeline.query("SELECT turns FROM agents_session WHERE id = ?", (session,))[0][0])


@asynccontextmanager
async def run_routines(sessions: SessionHarness, *, grace: float = 60.0) -> AsyncIterator[RoutineHarness]:
    harness = RoutineHarness(sessions, SetClock())
    async with asyncio.TaskGroup() as group:
        harness.start(group, grace)
        try:
            yield harness
        finally:
            await harness.stop()
