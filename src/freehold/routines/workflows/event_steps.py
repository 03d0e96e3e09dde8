"""Steps that wait for an event of the events slot."""

import asyncio
from dataclasses import replace

from freehold.errors import FreeholdError
from freehold.routines.workflows.records import WorkflowStep
from freehold.routines.workflows.step_store import StepEnd, is_event
from freehold.routines.workflows.store import WorkflowStore
from freehold.slots import Slot, SlotCaller
from freehold.slots.events.cloud_event import CloudEvent
from freehold.slots.events.contract import MAX_WAIT, AwaitEvents, ReadEvents

PAGE = 200
OFF_DELAY = 30.0
CALLER = SlotCaller("freehold")


class EventSteps:
    """Does nothing until a step waits. Each step has the number of the last event that it has seen."""

    def __init__(self, store: WorkflowStore, slot: Slot | None) -> None:
        self._store = store
        self._slot = slot
        self._changed = asyncio.Event()

    def poke(self) -> None:
        self._changed.set()

    async def find_last(self) -> int | None:
        """The last event now: a step waits for what comes after it. None when there is no slot, or it is away: `run` asks
        again for the step then."""
        try:
            return None if self._slot is None else await self._ask_last(self._slot)
        except FreeholdError:
            return None

    @staticmethod
    async def _ask_last(slot: Slot) -> int:
        newest = await slot.call(ReadEvents(limit=1, newest=True), CALLER)
        return newest.events[-1].sequence if newest.events else 0

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._changed.clear()
            steps = await self._store.journal.keep(self._store.steps.list_open_steps, "event")
            if self._slot is None or not steps:
                await self._changed.wait()
                continue
            try:
                await self._read(self._slot, await self._complete(self._slot, steps))
            except FreeholdError:
                await asyncio.sleep(OFF_DELAY)  # the slot is off, or away for a moment

    async def _complete(self, slot: Slot, steps: list[WorkflowStep]) -> list[WorkflowStep]:
        """The steps, each with an event that it has seen last. One that began while the slot was away waits from now on.

        Raises what keeps the slot from answering.
        """
        if all(step.after is not None for step in steps):
            return steps
        last = await self._ask_last(slot)
        for step in steps:
            if step.after is None:
                await self._store.journal.keep(self._store.steps.note_event, step, last)
        return [step if step.after is not None else replace(step, after=last) for step in steps]

    async def _read(self, slot: Slot, steps: list[WorkflowStep]) -> None:
        after = min(step.after or 0 for step in steps)
        await slot.call(AwaitEvents(after, MAX_WAIT), CALLER)
        page = await slot.call(ReadEvents(after, limit=PAGE), CALLER)
        for step in steps:
            await self._store.journal.keep(self._see, step, page.events, page.cursor)

    def _see(self, step: WorkflowStep, events: tuple[CloudEvent, ...], cursor: int) -> None:
        for event in events:
            if event.sequence > (step.after or 0) and is_event(str(step.given["name"]), event.type):
                told = {"id": event.id, "type": event.type, "subject": event.subject, "data": dict(event.data)}
                self._store.steps.end_step(step, StepEnd(told))
                return
        if cursor > (step.after or 0):
            self._store.steps.note_event(step, cursor)
