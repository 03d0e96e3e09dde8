"""What `freehold slots try orchestrator` does to another Freehold: it asks, and begins nothing."""

from collections.abc import Mapping

from freehold.slots.contract import SlotCaller, SlotImplementation, SlotName
from freehold.slots.errors import SlotError
from freehold.slots.host import SlotPlace, make_external
from freehold.slots.orchestrator.contract import GetRun, ListRuns
from freehold.slots.trial import TrialPart

OWNER = SlotCaller("owner")


def make_trial(name: SlotName, place: SlotPlace, settings: Mapping[str, str], unique: str) -> SlotImplementation:
    return make_external(name, place, settings)


async def remove_trial(store: SlotImplementation) -> None:
    """Nothing was made."""


async def _list(store: SlotImplementation) -> None:
    await store.call(ListRuns(limit=1), OWNER)


async def _refuse(store: SlotImplementation) -> None:
    try:
        await store.call(GetRun("none"), OWNER)
    except SlotError as error:
        if error.problem == "not-found":
            return
        raise
    raise SlotError("orchestrator", "conflict", "A run that does not exist was found")


PARTS: tuple[TrialPart, ...] = (("List the runs", _list), ("Ask for a run that does not exist", _refuse))
