"""The metrics of workflows."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable

from freehold.gateway.services import Services
from freehold.observe.metrics import MetricsRegistry
from freehold.routines.clock import WallClock
from freehold.routines.workflows.store import WorkflowStore

OPEN = ("due", "working", "waiting")


def add_workflow_metrics(metrics: MetricsRegistry, services: Services) -> Callable[[], Awaitable[None]]:
    store = WorkflowStore(services.timeline, WallClock())
    gauge = metrics.gauge("freehold_workflows", "Workflows that have not ended, by state.", ["state"])

    async def refresh() -> None:
        try:
            counts = await asyncio.to_thread(store.count_states)
        except sqlite3.OperationalError:  # the tables are not made yet
            counts = {}
        for state in OPEN:
            gauge.set(counts.get(state, 0), state=state)

    return refresh
