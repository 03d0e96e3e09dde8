"""The health component of routines."""

import asyncio
import sqlite3

from freehold.gateway.services import Services
from freehold.observe.probes import Probe, ProbeResult
from freehold.routines.clock import WallClock
from freehold.routines.routine_store import RoutineStore
from freehold.routines.run_store import RunStore


def make_probe(services: Services) -> Probe:
    """Degraded when a time has passed that began no run, and when a routine was paused for its failures."""
    runs = RunStore(RoutineStore(services.timeline, WallClock()))

    async def probe() -> ProbeResult | None:
        try:
            problems = await asyncio.to_thread(runs.list_problems)
        except sqlite3.OperationalError:  # the tables are not made yet
            return ProbeResult("off")
        return ProbeResult("degraded", "; ".join(problems)) if problems else None

    return probe
