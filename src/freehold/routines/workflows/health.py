"""The health component of workflows."""

import asyncio
import sqlite3

from freehold.gateway.services import Services
from freehold.observe.probes import Probe, ProbeResult
from freehold.routines.clock import WallClock
from freehold.routines.workflows.store import WorkflowStore


def make_probe(services: Services) -> Probe:
    store = WorkflowStore(services.timeline, WallClock())

    async def probe() -> ProbeResult | None:
        try:
            overdue = await asyncio.to_thread(store.find_overdue)
        except sqlite3.OperationalError:  # the tables are not made yet
            return ProbeResult("off")
        if overdue is not None:
            return ProbeResult("degraded", f"The workflow {overdue} should have gone on by now")
        return None

    return probe
