"""Services of features are loaded when there is something to do, or when they are asked for."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.condition import until

from freehold.features import Feature, WorkSigns
from freehold.gateway.feature_services import FeatureServices
from freehold.manifest import Manifest
from freehold.timeline import Timeline

pytestmark = pytest.mark.asyncio
MADE: list["Counted"] = []
TABLE = "CREATE TABLE things_thing (x INTEGER)"


class Counted:
    """A service that is counted."""

    def __init__(self, _context: object) -> None:
        MADE.append(self)
        self.running = asyncio.Event()

    async def run(self) -> None:
        self.running.set()
        await asyncio.Event().wait()


class Eager(Counted):
    """One that never waits."""


WAITING = Feature(
    name="routines",
    title="x",
    section="",
    service=f"{__name__}:Counted",
    work=WorkSigns(("things_thing",), ("thing.*",)),
)
EAGER = Feature(name="channels", title="x", section="", service=f"{__name__}:Eager")


@pytest.fixture
def timeline(tmp_path_factory: pytest.TempPathFactory) -> Any:
    MADE.clear()
    with Timeline(tmp_path_factory.mktemp("home") / "timeline.db") as opened:
        yield opened


def open_services(timeline: Timeline, manifest: dict[str, Any] | None = None) -> FeatureServices:
    services = SimpleNamespace(timeline=timeline, manifest=Manifest.model_validate(manifest or {}))
    context: Any = SimpleNamespace(services=services)
    return FeatureServices(context, [EAGER, WAITING])


async def test_a_service_without_work_is_not_made_and_the_others_run(timeline: Timeline) -> None:
    running = asyncio.create_task(open_services(timeline).run())
    await until(lambda: MADE and MADE[0].running.is_set())
    timeline.append("other.event")
    await asyncio.sleep(0.1)
    assert [type(one) for one in MADE] == [Eager]
    running.cancel()


async def test_what_another_process_adds_wakes_it(timeline: Timeline) -> None:
    running = asyncio.create_task(open_services(timeline).run())
    await until(lambda: MADE and MADE[0].running.is_set())
    with Timeline(timeline.path) as other:
        other.ensure_schema("things", TABLE)
        with other.transaction() as tx:
            tx.execute("INSERT INTO things_thing VALUES (1)")
            tx.append("thing.added")
    await until(lambda: len(MADE) == 2 and MADE[1].running.is_set())
    running.cancel()


async def test_a_stored_row_is_work(timeline: Timeline) -> None:
    timeline.ensure_schema("things", TABLE)
    with timeline.transaction() as tx:
        tx.execute("INSERT INTO things_thing VALUES (1)")
    running = asyncio.create_task(open_services(timeline).run())
    await until(lambda: len(MADE) == 2 and all(one.running.is_set() for one in MADE))
    running.cancel()


async def test_a_changed_section_is_work(timeline: Timeline) -> None:
    given = {"routines": {"x": {"every": "1h", "prompt": "p"}}}
    running = asyncio.create_task(open_services(timeline, given).run())
    await until(lambda: len(MADE) == 2 and all(one.running.is_set() for one in MADE))
    running.cancel()


async def test_who_asks_for_it_gets_it_running_also_from_a_thread(timeline: Timeline) -> None:
    services = open_services(timeline)
    running = asyncio.create_task(services.run())
    await until(lambda: MADE and MADE[0].running.is_set())
    found = await asyncio.gather(*(asyncio.to_thread(services.list) for _ in range(8)))
    assert len(MADE) == 2
    assert all(one == found[0] for one in found)
    await until(MADE[1].running.is_set)
    running.cancel()


async def test_one_that_was_asked_for_before_the_start_runs(timeline: Timeline) -> None:
    services = open_services(timeline)
    assert isinstance(services.find(Counted), Eager)
    services.list()
    running = asyncio.create_task(services.run())
    await until(lambda: len(MADE) == 2 and all(one.running.is_set() for one in MADE))
    running.cancel()
