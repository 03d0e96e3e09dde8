"""What `freehold slots try beads` does to a database."""

from freehold.slots.beads.contract import AddNeed, ClaimBead, CloseBead, CreateBead, ExportBeads, ListBeads
from freehold.slots.contract import SlotCaller, SlotImplementation
from freehold.slots.errors import SlotError, SlotProblem
from freehold.slots.trial import TrialPart

FIRST, SECOND = SlotCaller("try:first"), SlotCaller("try:second")


def _expect(holds: bool, words: str) -> None:
    if not holds:
        raise SlotError("beads", "conflict", words, hint="This database cannot be used for work items")


async def _problem_of(store: SlotImplementation, request: ClaimBead | AddNeed) -> SlotProblem | None:
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


PARTS: tuple[TrialPart, ...] = (
    ("Create an item, once for one key", _create),
    ("Claim it, and refuse a second claim", _claim),
    ("Let one item wait for another, and refuse a cycle", _depend),
    ("Export all items", _export),
)
