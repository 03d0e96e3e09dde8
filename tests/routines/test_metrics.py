"""What Prometheus is told of routines and workflows."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from freehold.errors import FreeholdError
from freehold.gateway.services import Services
from freehold.manifest import load_manifest
from freehold.observe.metrics import MetricsRegistry
from freehold.observe.secrets import Secret
from freehold.routines.clock import WallClock
from freehold.routines.metrics import add_routine_metrics
from freehold.routines.routine_store import RoutineStore
from freehold.routines.run_store import MANUAL, RunStore
from freehold.routines.section import RoutineSection
from freehold.routines.workflows.journal import TimelineJournal
from freehold.routines.workflows.metrics import add_workflow_metrics
from freehold.routines.workflows.store import WorkflowOrder, WorkflowStore
from freehold.timeline import Timeline

pytestmark = pytest.mark.asyncio


@pytest.fixture
def timeline(tmp_path: Path) -> Iterator[Timeline]:
    with Timeline(tmp_path / "timeline.db") as timeline:
        yield timeline


def make_services(tmp_path: Path, timeline: Timeline, manifest: str = "") -> Services:
    (tmp_path / "freehold.toml").write_text(manifest)

    def find_secret(name: str) -> Secret:
        raise FreeholdError("vault.not-found", name)

    loaded = load_manifest(tmp_path / "freehold.toml", {}, home=tmp_path).manifest
    given: Any = SimpleNamespace(timeline=timeline, manifest=loaded, vault=SimpleNamespace(get=find_secret))
    return cast("Services", given)


def read(metrics: MetricsRegistry) -> dict[str, float]:
    lines = [line.rpartition(" ") for line in metrics.expose().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines if float(value)}


async def test_routines_and_their_open_runs_are_counted_by_state(tmp_path: Path, timeline: Timeline) -> None:
    metrics = MetricsRegistry()
    refresh = add_routine_metrics(metrics, make_services(tmp_path, timeline))
    await refresh()
    assert read(metrics) == {}  # before there is a table
    routines = RoutineStore(timeline, WallClock())
    routines.prepare()
    for name in ("one", "two", "three"):
        routines.add(name, RoutineSection(every=3600, prompt="Look."), who="owner")
    routines.pause("three", who="owner")
    RunStore(routines).trigger("one", MANUAL + "x", {}, who="owner")
    await refresh()
    assert read(metrics) == {
        'freehold_routines{state="on"}': 2,
        'freehold_routines{state="paused"}': 1,
        'freehold_routine_runs{state="due"}': 1,
    }
    routines.remove("one", who="owner")
    await refresh()
    assert read(metrics) == {'freehold_routines{state="on"}': 1, 'freehold_routines{state="paused"}': 1}


async def test_workflows_that_have_not_ended_are_counted_by_state(tmp_path: Path, timeline: Timeline) -> None:
    metrics = MetricsRegistry()
    refresh = add_workflow_metrics(metrics, make_services(tmp_path, timeline))
    await refresh()
    assert read(metrics) == {}
    store = WorkflowStore(TimelineJournal(timeline), WallClock())
    store.journal.prepare()
    made = [store.add(WorkflowOrder("w.py", {}), who="owner").id for _ in range(3)]
    store.claim(made[0], "text", "here")
    store.cancel(made[1], who="owner", reason="enough")
    await refresh()
    assert read(metrics) == {'freehold_workflows{state="due"}': 1, 'freehold_workflows{state="working"}': 1}


async def test_a_journal_that_is_away_does_not_end_a_scrape(tmp_path: Path, timeline: Timeline) -> None:
    metrics = MetricsRegistry()
    manifest = f'[workflows.postgres]\nurl = "postgresql://owner@/postgres?host={tmp_path}"\n'
    refresh = add_workflow_metrics(metrics, make_services(tmp_path, timeline, manifest))
    await refresh()
    assert read(metrics) == {}
