"""Refuses items that would wait for themselves.

An item is done after its children are done; it can begin after everything that it needs is done, and after the item that
it is part of can begin. So each item has two events, `begin` and `done`, and no event may wait for itself.
"""

from collections.abc import Iterable
from typing import Literal

from freehold.slots.errors import SlotError
from freehold.slots.statement import Steps, ask, places

Phase = Literal["begin", "done"]
WorkEvent = tuple[str, Phase]
_CHUNK = 400
"""How many ids one statement names."""


def refuse_cycle(id: str) -> Steps[None]:
    """Raises `beads.conflict` when the item waits for itself. Called after the change, in its transaction."""
    for start in ((id, "done"), (id, "begin")):  # type: WorkEvent
        seen: set[WorkEvent] = set()
        front: set[WorkEvent] = {start}
        while front:
            front = (yield from _waits_for(front)) - seen
            if start in front:
                raise SlotError(
                    "beads",
                    "conflict",
                    f"The item {id} would wait for itself",
                    hint="An item waits for what it needs, for its children, and for what its parent needs",
                )
            seen |= front


def _waits_for(front: set[WorkEvent]) -> Steps[set[WorkEvent]]:
    found: set[WorkEvent] = {(id, "begin") for id, phase in front if phase == "done"}
    for ids in _chunks(id for id, phase in front if phase == "done"):
        rows = yield from ask(f"SELECT id FROM beads_item WHERE parent IN {places(ids)}", *ids)  # noqa: S608
        found |= {(row[0], "done") for row in rows}
    for ids in _chunks(id for id, phase in front if phase == "begin"):
        needs = yield from ask(
            f"SELECT other FROM beads_link WHERE kind = 'blocks' AND item IN {places(ids)}",  # noqa: S608
            *ids,
        )
        parents = yield from ask(
            f"SELECT parent FROM beads_item WHERE parent IS NOT NULL AND id IN {places(ids)}",  # noqa: S608
            *ids,
        )
        found |= {(row[0], "done") for row in needs} | {(row[0], "begin") for row in parents}
    return found


def _chunks(ids: Iterable[str]) -> list[list[str]]:
    every = sorted(ids)
    return [every[start : start + _CHUNK] for start in range(0, len(every), _CHUNK)]
