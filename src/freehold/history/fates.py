"""What a restore does to each path, in the words and counts that the command line, the API and the recovery page show."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from freehold.history.model import FinalFate, PathFate, RestorePlan, RestoreStep
from freehold.history.slices import sort_in_slices

NamePath = tuple[bytes, ...]
FateGroup = Literal["restored", "removed", "adjusted", "left_alone", "failed"]

PLANNED_WORDS: dict[FinalFate, str] = {
    "write": "restore",
    "link": "restore",
    "folder": "create folder",
    "remove": "remove",
    "mode": "set mode",
    "time": "set time",
    "keep": "leave alone",
    "failed": "fail",
}
DONE_WORDS: dict[FinalFate, str] = {
    "write": "restored",
    "link": "restored",
    "folder": "created folder",
    "remove": "removed",
    "mode": "set mode",
    "time": "set time",
    "keep": "left alone",
    "failed": "failed",
}
_GROUPS: dict[FinalFate, FateGroup] = {
    "write": "restored",
    "link": "restored",
    "folder": "restored",
    "remove": "removed",
    "mode": "adjusted",
    "time": "adjusted",
    "keep": "left_alone",
    "failed": "failed",
}
_PLANNED_SUMMARY: dict[FateGroup, str] = {
    "restored": "to restore",
    "removed": "to remove",
    "adjusted": "to set mode or time",
    "left_alone": "to leave alone",
    "failed": "failed",
}
_DONE_SUMMARY: dict[FateGroup, str] = {
    "restored": "restored",
    "removed": "removed",
    "adjusted": "with mode or time set",
    "left_alone": "left alone",
    "failed": "failed",
}


def list_planned_fates(plan: RestorePlan) -> list[PathFate]:
    """The fates of a plan, in path order."""
    return [_planned(step) for step in plan.steps if not step.is_only_folder_time]


def list_final_fates(
    tried: Mapping[NamePath, RestoreStep],
    remaining: Sequence[RestoreStep],
    unsettled: Mapping[NamePath, str],
    set_aside: Mapping[NamePath, str],
) -> tuple[PathFate, ...]:
    """The fates after a restore, in path order.

    `remaining` has the steps that a new plan would have; `unsettled` has the reason for each of them. `set_aside` has
    where the file is kept that stood at a path.
    """
    found = {path: _planned(step) for path, step in tried.items() if not step.is_only_folder_time}
    for path, kept_as in set_aside.items():
        if path in found:
            found[path] = found[path]._replace(detail=f"the file that was there is kept as {kept_as}")
    for step in remaining:
        fate: FinalFate = "keep" if step.fate == "keep" else "failed"
        found[step.path] = PathFate(b"/".join(step.path), fate, unsettled[step.path])
    return tuple(found[path] for path in sort_in_slices(found, lambda path: path))


def count_fates(fates: Iterable[PathFate]) -> dict[FateGroup, int]:
    """How many paths there are of each group; every group is present."""
    counts: dict[FateGroup, int] = dict.fromkeys(_DONE_SUMMARY, 0)
    for each in fates:
        counts[_GROUPS[each.fate]] += 1
    return counts


def summarize_fates(counts: Mapping[FateGroup, int], *, planned: bool) -> str:
    """`2 restored, 1 removed`; for a plan `2 to restore, 1 to remove`."""
    words = _PLANNED_SUMMARY if planned else _DONE_SUMMARY
    parts = [f"{counts[group]} {word}" for group, word in words.items() if counts[group]]
    return ", ".join(parts) or ("nothing to change" if planned else "nothing changed")


def _planned(step: RestoreStep) -> PathFate:
    return PathFate(b"/".join(step.path), step.fate, step.detail)
