"""The timeline event of an undo, redo, restore or revert: what was done, and who asked for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from freehold.history import calls
from freehold.history.author import author_json, name_actor

if TYPE_CHECKING:
    from freehold.timeline.event import Json

RestoreCall = calls.UndoChanges | calls.RedoChanges | calls.RestoreEntry | calls.RevertEntry | calls.RecoverRestore

_KINDS: dict[type[RestoreCall], str] = {
    calls.UndoChanges: "history.undone",
    calls.RedoChanges: "history.redone",
    calls.RestoreEntry: "history.restored",
    calls.RevertEntry: "history.reverted",
    calls.RecoverRestore: "history.recovered",
}
_MAX_PATHS = 100


class RestoreEvent(NamedTuple):
    kind: str
    data: dict[str, Json]
    who: str


def make_restore_event(call: RestoreCall, report: calls.RestoreReport) -> RestoreEvent:
    """`asked_by` in the data has the fields of `Author`, without the prompt."""
    author = call.who.as_author()
    asked_by: dict[str, Json] = {name: value for name, value in author_json(author).items() if name != "prompt"}
    counts: dict[str, Json] = dict(report.counts)
    unsettled: list[Json] = [each.path for each in report.unsettled[:_MAX_PATHS]]
    data: dict[str, Json] = {
        "entry": report.entry.id,
        "paths": report.done,
        "counts": counts,
        "unsettled": unsettled,
        "asked_by": asked_by,
    }
    return RestoreEvent(_KINDS[type(call)], data, name_actor(author))
