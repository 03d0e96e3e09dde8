"""Routines that begin with an event of the events slot."""

from datetime import datetime

from freehold.agents.threads import run_blocking
from freehold.errors import FreeholdError
from freehold.routines.file_watch import WaitRoutinesChanged
from freehold.routines.records import Routine
from freehold.routines.run_store import RunStore
from freehold.slots import Slot, SlotCaller
from freehold.slots.events.cloud_event import OWN_TYPES, CloudEvent
from freehold.slots.events.contract import MAX_WAIT, AwaitEvents, ReadEvents

POSITION = "events"
PAGE = 200
OFF_DELAY = 30.0
CALLER = SlotCaller("freehold")


class EventWatch:
    """Does nothing until there is a routine with such a trigger. The log numbers events, so each is seen once."""

    def __init__(self, runs: RunStore, slot: Slot, wait_routines_changed: WaitRoutinesChanged) -> None:
        self._runs = runs
        self._slot = slot
        self._wait_routines_changed = wait_routines_changed

    async def run(self) -> None:
        """Until cancelled."""
        routines = self._runs.routines
        while True:
            if not await run_blocking(routines.list_triggered, "event"):
                await self._wait_routines_changed(None)
                continue
            try:
                await self._read()
            except FreeholdError:
                await self._wait_routines_changed(OFF_DELAY)  # the slot is off, or away for a moment

    async def _read(self) -> None:
        stored = await run_blocking(self._runs.routines.read_position, POSITION)
        if stored is None:
            newest = await self._slot.call(ReadEvents(limit=1, newest=True), CALLER)
            stored = str(newest.events[-1].sequence if newest.events else 0)
            await run_blocking(self._runs.routines.save_position, POSITION, stored)
        await self._slot.call(AwaitEvents(int(stored), MAX_WAIT), CALLER)
        page = await self._slot.call(ReadEvents(int(stored), limit=PAGE), CALLER)
        for event in page.events:
            await run_blocking(self._begin, event)
        if page.cursor != int(stored):
            await run_blocking(self._runs.routines.save_position, POSITION, str(page.cursor))

    def _begin(self, event: CloudEvent) -> None:
        for routine in self._runs.routines.list_triggered("event"):
            if not _is_meant(routine, event):
                continue
            told = {"id": event.id, "type": event.type, "subject": event.subject, "data": dict(event.data)}
            try:
                position = (POSITION, str(event.sequence - 1))
                self._runs.trigger(routine.name, f"event:{event.source}/{event.id}", told, position=position)
            except FreeholdError as error:
                self._runs.note_refusal(routine.name, error)


def _is_meant(routine: Routine, event: CloudEvent) -> bool:
    wanted = routine.spec.event
    # What routines do would begin them again.
    if event.type.startswith(f"{OWN_TYPES}routine."):
        return False
    if wanted is None or datetime.fromisoformat(event.time).timestamp() < routine.created:
        return False
    return event.type.startswith(wanted[:-1]) if wanted.endswith("*") else event.type == wanted
