"""What `freehold slots try beads` does to a database, and to another Freehold.

A database gets a schema of its own, which is removed again. Another Freehold has no such place: it is asked, and what is
written there is refused.
"""

from collections.abc import Mapping

from freehold.slots.beads.contract import AddNeed, ClaimBead, CloseBead, CreateBead, ExportBeads, GetBead, ListBeads
from freehold.slots.beads.external import is_neighbour
from freehold.slots.contract import SlotCaller, SlotImplementation, SlotName
from freehold.slots.errors import SlotError, SlotProblem
from freehold.slots.host import SlotPlace, make_external
from freehold.slots.trial import TrialPart

FIRST, SECOND = SlotCaller("try:first"), SlotCaller("try:second")
NOBODY = "fh-none"
"""The id of no item: those that Freehold makes have seven other letters."""


def make_trial(name: SlotName, place: SlotPlace, settings: Mapping[str, str], unique: str) -> SlotImplementation:
    own_place = {} if is_neighbour(settings.get("url", "")) else {"schema": unique}
    return make_external(name, place, {**settings, **own_place})


def _expect(holds: bool, words: str) -> None:
    if not holds:
        raise SlotError("beads", "conflict", words, hint="It cannot be used for work items")


async def _problem_of(store: SlotImplementation, request: ClaimBead | AddNeed | GetBead) -> SlotProblem | None:
    try:
        await store.call(request, SECOND)
    except SlotError as error:
        return error.problem
    return None


async def _create(store: SlotImplementation) -> None:
    made = [await store.call(CreateBead("An item of a trial", key="once"), FIRST) for _ in range(2)]
    _expect(made[0] == made[1], "The same request with the same key made two items")
    listed = (await store.call(ListBeads(), FIRST)).beads
    _expect(listed == (made[0],), "An item that was stored is not listed as it was stored")


async def _claim(store: SlotImplementation) -> None:
    item = (await store.call(ListBeads(), FIRST)).beads[0]
    await store.call(ClaimBead(item.id), FIRST)
    _expect(await _problem_of(store, ClaimBead(item.id)) == "claimed", "Two callers could claim one item")


async def _depend(store: SlotImplementation) -> None:
    first = (await store.call(ListBeads(), FIRST)).beads[0]
    second = await store.call(CreateBead("Another item", needs=(first.id,)), FIRST)
    _expect(second.blocked, "An item that needs another one is not blocked")
    _expect(await _problem_of(store, AddNeed(first.id, second.id)) == "conflict", "A cycle was not refused")
    await store.call(CloseBead(first.id, "tried"), FIRST)
    ready = (await store.call(ListBeads(ready=True), FIRST)).beads
    _expect([one.id for one in ready] == [second.id], "An item is not ready when all that it needs is closed")


async def _export(store: SlotImplementation) -> None:
    _expect(len((await store.call(ExportBeads(), FIRST)).records) == 2, "An export does not have all items")


async def _ask(store: SlotImplementation) -> None:
    listed = await store.call(ListBeads(ready=True, limit=1), FIRST)
    for item in listed.beads:
        found = (await store.call(GetBead(item.id), FIRST)).bead
        _expect(found.id == item.id, "Another item came than the one that was asked for")
    await store.call(ExportBeads(limit=1), FIRST)


async def _refuse(store: SlotImplementation) -> None:
    for request in (GetBead(NOBODY), ClaimBead(NOBODY)):
        _expect(await _problem_of(store, request) == "not-found", "An item that does not exist was found")


PARTS: tuple[TrialPart, ...] = (
    ("Create an item, once for one key", _create),
    ("Claim it, and refuse a second claim", _claim),
    ("Let one item wait for another, and refuse a cycle", _depend),
    ("Export all items", _export),
)
NEIGHBOUR_PARTS: tuple[TrialPart, ...] = (
    ("List, read and export an item", _ask),
    ("Claim an item that does not exist", _refuse),
)
"""Nobody can remove an item of another Freehold, so that none is made."""
