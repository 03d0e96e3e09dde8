"""The metrics of workflows."""

import sqlite3
from collections.abc import Awaitable, Callable

from freehold.errors import FreeholdError
from freehold.gateway.services import Services
from freehold.observe.metrics import MetricsRegistry
from freehold.routines.clock import WallClock
from freehold.routines.workflows.journal import open_journal
from freehold.routines.workflows.section import WorkflowsSection
from freehold.routines.workflows.store import WorkflowStore

OPEN = ("due", "working", "waiting")


def add_workflow_metrics(metrics: MetricsRegistry, services: Services) -> Callable[[], Awaitable[None]]:
    section = services.manifest.section(WorkflowsSection)
    journal = open_journal(section, services.timeline, services.vault.get)
    store = WorkflowStore(journal, WallClock())
    gauge = metrics.gauge("freehold_workflows", "Workflows that have not ended, by state.", ["state"])

    async def refresh() -> None:
        try:
            counts = await journal.run(store.count_states)
        except sqlite3.OperationalError:  # the tables are not made yet
            counts = {}
        except FreeholdError:  # it is away for a moment: what was known stays
            return
        for state in OPEN:
            gauge.set(counts.get(state, 0), state=state)

    return refresh
