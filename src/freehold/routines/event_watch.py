"""Routines that begin with an event of the events slot."""

from datetime import UTC, datetime

from freehold.agents.threads import run_blocking
from freehold.errors import FreeholdError
from freehold.routines.file_watch import FindKey, WaitRoutinesChanged
from freehold.routines.records import KEY, Routine
from freehold.routines.run_store import RunStore
from freehold.routines.workflow_work import run_of
from freehold.routines.workflows.records import KEY as WORKFLOW_KEY
from freehold.slots import Slot, SlotCaller
from freehold.slots.events.cloud_event import OWN_TYPES, CloudEvent
from freehold.slots.events.contract import MAX_WAIT, AwaitEvents, ReadEvents

POSITION = "events"
PAGE = 200
OFF_DELAY = 30.0
CALLER = SlotCaller("freehold")
UNATTENDED = (KEY, WORKFLOW_KEY)
"""How the name of a routine or workflow begins that does something, and the key of a prompt that it sends."""


class EventWatch:
    """Does nothing until there is a routine with such a trigger. The log numbers events, so each is seen once."""

    def __init__(
        self,
        runs: RunStore,
        slot: Slot,
        wait_routines_changed: WaitRoutinesChanged,
        find_key: FindKey,
    ) -> None:
        """`find_key` tells the key of the prompt that began a turn of a session. It raises for one that is not known."""
        self._runs = runs
        self._slot = slot
        self._wait_routines_changed = wait_routines_changed
        self._find_key = find_key

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
        if self._is_of_routine(event):
            return
        for routine in self._runs.routines.list_triggered("event"):
            if not _is_meant(routine, event):
                continue
            told = {"id": event.id, "type": event.type, "subject": event.subject, "data": dict(event.data)}
            try:
                if _read_time(event) < routine.created:
                    continue
                position = (POSITION, str(event.sequence - 1))
                self._runs.trigger(routine.name, f"event:{event.source}/{event.id}", told, position=position)
            except FreeholdError as error:
                self._runs.note_refusal(routine.name, error)

    def _is_of_routine(self, event: CloudEvent) -> bool:
        """Whether Freehold tells of the work of a routine: that would begin itself again and again."""
        kind = event.type.removeprefix(OWN_TYPES)
        if kind == event.type:
            return False
        if kind.startswith("routine.") or event.actor.startswith(UNATTENDED):
            return True
        session, turn, workflow = (event.data.get(name) for name in ("session", "turn", "workflow"))
        if isinstance(workflow, str):
            return run_of(workflow) != ""
        if not isinstance(session, str):
            return False
        if isinstance(turn, int):
            return self._is_unattended(session, turn, unknown=True)
        return self._runs.is_of_routine(session) or self._is_unattended(session, 1, unknown=False)

    def _is_unattended(self, session: str, turn: int, *, unknown: bool) -> bool:
        """Whether a routine or a workflow has begun a turn. `unknown` is the answer for one that is not there."""
        try:
            return self._find_key(session, turn).startswith(UNATTENDED)
        except FreeholdError as error:
            if error.kind.name != "not-found":
                raise
            return unknown


def _is_meant(routine: Routine, event: CloudEvent) -> bool:
    wanted = routine.spec.event
    if wanted is None:
        return False
    return event.type.startswith(wanted[:-1]) if wanted.endswith("*") else event.type == wanted


def _read_time(event: CloudEvent) -> float:
    """In seconds since 1970. It comes from whoever has made the event. Raises `routine.malformed`."""
    try:
        found = datetime.fromisoformat(event.time)
    except ValueError:
        raise FreeholdError("routine.malformed", f"The time of an event is {event.time!a:.80}") from None
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()
