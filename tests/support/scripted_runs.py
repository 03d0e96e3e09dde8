"""An engine of runs that a test drives: no agent works, and the test says what happens."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.gateway.running_gateway import RunningGateway, running_gateway
from tests.support.condition import DEADLINE, until

from freehold.errors import FreeholdError
from freehold.gateway.services import Services
from freehold.slots.contract import Reply, SlotCall, SlotCaller
from freehold.slots.orchestrator.contract import RunChange, RunEvent
from freehold.slots.orchestrator.engine import (
    ChangeCounts,
    ChildReport,
    ChildSpec,
    IsOverBudget,
    Report,
    SessionCost,
    SessionWanted,
)


class ScriptedRuns:
    """`children` are the runs that were begun, by id."""

    def __init__(self) -> None:
        self.children: dict[str, tuple[ChildSpec, Report, IsOverBudget]] = {}
        self.opened = 0
        self.ended: list[str] = []
        self.merged: list[str] = []
        self.costs: dict[str, float] = {}
        self.events: dict[str, list[RunEvent]] = {}
        self.changes: dict[str, tuple[RunChange, ...]] = {}
        self.salvaged: list[str] = []
        self.unpriced: set[str] = set()
        self.dropped: list[str] = []
        self.states: set[tuple[str, int]] = set()
        """The folders and the entries of history that have them."""

    async def check_state(self, folder: str, entry: int) -> None:
        if (folder, entry) not in self.states:
            raise FreeholdError(
                "history.no-such-entry", f"There is no entry {entry} in the history", hint="freehold log"
            )

    async def open_session(self, wanted: SessionWanted) -> tuple[str, str]:
        self.opened += 1
        return f"session-{self.opened}", wanted.agent or "builtin"

    def launch(self, child: ChildSpec, report: Report, is_over_budget: IsOverBudget) -> None:
        self.children[child.id] = (child, report, is_over_budget)

    def end(self, id: str, reason: str) -> None:
        self.ended.append(id)

    async def read_events(self, session: str, after: int, limit: int) -> tuple[RunEvent, ...]:
        return tuple(one for one in self.events.get(session, []) if one.seq > after)[:limit]

    async def wait_event(self, session: str, after: int) -> None:
        await until(lambda: any(one.seq > after for one in self.events.get(session, [])))

    async def cost_of(self, session: str) -> SessionCost:
        return SessionCost(self.costs.get(session, 0.0), session not in self.unpriced)

    async def compare(self, id: str) -> tuple[tuple[RunChange, ...], int]:
        found = self.changes.get(id, ())
        return found[:200], len(found)

    async def merge(self, id: str, why: str, who: str, *, force: bool) -> None:
        """Once, as the real one."""
        conflicts = [one.path for one in self.changes.get(id, ()) if one.conflict]
        if conflicts and not force:
            raise FreeholdError("history.conflicts", f"Others have changed {', '.join(conflicts)}")
        if id not in self.merged:
            self.merged.append(id)

    async def drop(self, id: str) -> None:
        self.dropped.append(id)

    async def salvage(self, id: str) -> ChangeCounts:
        self.salvaged.append(id)
        return ChangeCounts(added=1)

    async def tell(self, id: str, report: ChildReport) -> None:
        """The run reports this."""
        await self.children[id][1](report)

    async def is_over_budget(self, id: str) -> bool:
        return await self.children[id][2]()


class Neighbour(NamedTuple):
    """Another Freehold: its address, a token named neighbour, and itself, which lives in the loop of another thread."""

    url: str
    token: str
    services: Services
    loop: asyncio.AbstractEventLoop

    async def call_beads(self, request: SlotCall[Reply], caller: SlotCaller) -> Reply:
        """As somebody there calls."""
        calling = self.services.slots.beads.call(request, caller)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(calling, self.loop))

    def forget_beads(self) -> None:
        """It has no items any more."""
        with self.services.timeline.transaction() as connection:
            tables = "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'beads\\_%' ESCAPE '\\'"
            for (table,) in connection.execute(tables).fetchall():
                connection.execute(f"DELETE FROM {table}")


@contextmanager
def running_neighbour(folder: Path) -> Iterator[Neighbour]:
    """Another Freehold whose runs are scripted, in a thread of its own."""
    found: list[Neighbour] = []
    started, over = threading.Event(), threading.Event()

    async def serve() -> None:
        async with running_gateway(folder, '[slots]\norchestrator = "local"\nbeads = "local"\n') as gateway:
            await use_scripted_runs(gateway)
            await until(lambda: gateway.services.slots.beads.status.state == "ok")
            headers = gateway.token("orchestrator", "prompt", "files", "beads", name="neighbour")
            token, loop = headers["authorization"].removeprefix("Bearer "), asyncio.get_running_loop()
            found.append(Neighbour(gateway.url, token, gateway.services, loop))
            started.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert started.wait(DEADLINE), "the neighbour did not start"
        yield found[0]
    finally:
        over.set()
        thread.join()


async def use_scripted_runs(gateway: RunningGateway) -> ScriptedRuns:
    slot = gateway.services.slots.get("orchestrator")
    await until(lambda: slot.status.state == "ok")
    runs = ScriptedRuns()
    gateway.services.slots.engine.engine = runs
    return runs
