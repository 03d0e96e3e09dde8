"""The metrics of routines."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable

from freehold.gateway.services import Services
from freehold.observe.metrics import MetricsRegistry
from freehold.routines.clock import WallClock
from freehold.routines.records import UNFINISHED
from freehold.routines.routine_store import RoutineStore
from freehold.routines.run_store import RunStore


def add_routine_metrics(metrics: MetricsRegistry, services: Services) -> Callable[[], Awaitable[None]]:
    runs = RunStore(RoutineStore(services.timeline, WallClock()))
    routines = metrics.gauge("freehold_routines", "Routines, by state.", ["state"])
    unfinished = metrics.gauge("freehold_routine_runs", "Runs of routines that have not ended, by state.", ["state"])

    async def refresh() -> None:
        try:
            counts, open_runs = await asyncio.to_thread(runs.count_states)
        except sqlite3.OperationalError:  # the tables are not made yet
            counts, open_runs = {}, {}
        for state in ("on", "paused", "over"):
            routines.set(counts.get(state, 0), state=state)
        for run_state in UNFINISHED:
            unfinished.set(open_runs.get(run_state, 0), state=run_state)

    return refresh
