"""The health component of workflows."""

import sqlite3

from freehold.agents.threads import run_blocking
from freehold.gateway.services import Services
from freehold.observe.probes import Probe, ProbeResult
from freehold.routines.clock import WallClock
from freehold.routines.workflows.journal import TimelineJournal, open_journal
from freehold.routines.workflows.section import WorkflowsSection
from freehold.routines.workflows.store import WorkflowStore


def make_probe(services: Services) -> Probe:
    section = services.manifest.section(WorkflowsSection)
    journal = open_journal(section, services.timeline, services.vault.get)
    store = WorkflowStore(journal, WallClock())
    timeline_store = WorkflowStore(TimelineJournal(services.timeline), WallClock())

    async def probe() -> ProbeResult | None:
        try:
            overdue = await journal.run(store.steps.find_overdue)
        except sqlite3.OperationalError:  # the tables are not made yet
            return ProbeResult("off")
        if overdue is not None:
            return ProbeResult("degraded", f"The workflow {overdue} should have gone on by now")
        if section.postgres:
            left = sum((await run_blocking(timeline_store.count_states)).values())
            if left:
                words = f"{left} workflows have not ended in the file of the timeline"
                return ProbeResult("degraded", f"{words}: they go on when [workflows.postgres] is taken out")
        return None

    return probe
