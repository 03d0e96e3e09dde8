"""Steps that wait for an event of a real events slot, also while it is away or nothing runs."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from tests.support.condition import until

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.manifest.sections.slots import SlotSection
from freehold.observe.secrets import Secret
from freehold.routines.clock import WallClock
from freehold.routines.workflows import event_steps
from freehold.routines.workflows.event_steps import EventSteps
from freehold.routines.workflows.journal import TimelineJournal
from freehold.routines.workflows.messages import StepAsked
from freehold.routines.workflows.records import WorkflowStep
from freehold.routines.workflows.store import WorkflowOrder, WorkflowStore
from freehold.slots import Slot, SlotCaller
from freehold.slots.events.contract import PublishEvent
from freehold.slots.host import SlotPlace, make_slot
from freehold.timeline import Timeline

OWNER = SlotCaller("owner")


class UnsteadySlot:
    """A slot that can be away."""

    def __init__(self, slot: Slot) -> None:
        self.slot = slot
        self.is_away = False
        self.asked = 0

    async def call(self, call: Any, caller: SlotCaller) -> Any:
        self.asked += 1
        if self.is_away:
            raise FreeholdError("slots.unavailable", "The slot is away")
        return await self.slot.call(call, caller)

    async def publish(self, type: str, number: int) -> None:
        await self.slot.call(PublishEvent(type, {"number": number}), OWNER)


def no_secret(name: str) -> Secret:
    raise AssertionError(name)


@pytest.fixture
def timeline(tmp_path: Path) -> Iterator[Timeline]:
    with Timeline(tmp_path / "timeline.db") as timeline:
        yield timeline


@pytest.fixture
async def slot(tmp_path: Path, timeline: Timeline) -> AsyncIterator[UnsteadySlot]:
    place = SlotPlace(Home(tmp_path, tmp_path / "run"), timeline, no_secret, {})
    slot = make_slot("events", SlotSection(mode="local"), place)
    await slot.connect()
    yield UnsteadySlot(slot)
    await slot.close()


@pytest.fixture
def store(timeline: Timeline) -> WorkflowStore:
    journal = TimelineJournal(timeline)
    journal.prepare()
    return WorkflowStore(journal, WallClock())


@asynccontextmanager
async def running(store: WorkflowStore, slot: UnsteadySlot | None) -> AsyncIterator[EventSteps]:
    """The part of a gateway that looks for events, as long as the block runs."""
    steps = EventSteps(store, cast("Slot | None", slot))
    task = asyncio.ensure_future(steps.run())
    try:
        yield steps
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def begin(store: WorkflowStore, steps: EventSteps, name: str) -> WorkflowStep:
    """A workflow that waits for an event with this name."""
    id = store.add(WorkflowOrder("w.py", {}), who="owner").id
    store.claim(id, "", "first")
    asked = StepAsked("1", "event", name, {"name": name})
    step, _ = store.steps.begin_step(id, asked, 10, "first", after=await steps.find_last())
    steps.poke()
    return step


def current(store: WorkflowStore, step: WorkflowStep) -> WorkflowStep:
    return store.steps.get_step(step.workflow, "1")


async def until_done(store: WorkflowStore, *steps: WorkflowStep) -> list[Any]:
    """What each of them was told."""
    await until(lambda: all(current(store, step).state == "done" for step in steps))
    return [current(store, step).result["data"]["number"] for step in steps]


async def test_a_step_waits_for_the_next_event_with_its_name(store: WorkflowStore, slot: UnsteadySlot) -> None:
    await slot.publish("org.example.paid", 1)
    async with running(store, slot) as steps:
        exact, any_of = await begin(store, steps, "org.example.paid"), await begin(store, steps, "org.example.*")
        await slot.publish("org.example.sent", 2)
        assert await until_done(store, any_of) == [2]
        assert current(store, exact).state == "waiting"
        await slot.publish("org.example.paid", 3)
        assert await until_done(store, exact) == [3]
        assert current(store, any_of).result["type"] == "org.example.sent"


async def test_an_event_that_comes_while_nothing_runs_is_found_afterwards(
    store: WorkflowStore, slot: UnsteadySlot
) -> None:
    async with running(store, slot) as steps:
        step = await begin(store, steps, "org.example.*")
    await slot.publish("org.example.paid", 1)
    async with running(store, slot):
        assert await until_done(store, step) == [1]


@pytest.mark.parametrize("has_slot", [True, False])
async def test_a_step_that_begins_while_the_slot_is_away_waits_from_when_it_is_back(
    store: WorkflowStore, slot: UnsteadySlot, monkeypatch: pytest.MonkeyPatch, has_slot: bool
) -> None:
    """Or while there was none, and the owner has turned it on since."""
    monkeypatch.setattr(event_steps, "OFF_DELAY", 0.01)
    await slot.publish("org.example.paid", 1)
    slot.is_away = has_slot
    async with running(store, slot if has_slot else None) as steps:
        step = await begin(store, steps, "org.example.*")
        assert step.after is None
        await until(lambda: not has_slot or slot.asked > 3)
        slot.is_away = False
        if has_slot:
            await until(lambda: current(store, step).after is not None)
    async with running(store, slot):
        await until(lambda: current(store, step).after is not None)
        await slot.publish("org.example.paid", 2)
        assert await until_done(store, step) == [2]


async def test_a_step_whose_workflow_was_ended_is_not_told(store: WorkflowStore, slot: UnsteadySlot) -> None:
    async with running(store, slot) as steps:
        ended, other = await begin(store, steps, "org.example.*"), await begin(store, steps, "org.example.*")
        store.cancel(ended.workflow, who="owner", reason="enough")
        await slot.publish("org.example.paid", 1)
        assert await until_done(store, other) == [1]
    assert current(store, ended).state == "cancelled"
