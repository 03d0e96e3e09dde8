"""Undo, redo, restore and revert: find the target state, and plan the steps to it. `restore_runner` carries them out."""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from freehold.errors import FreeholdError
from freehold.history.contents import ContentReader, ContentStore
from freehold.history.database import transaction
from freehold.history.entries import EntryWriter
from freehold.history.ignore_rules import IgnoredFolders, IgnoreMatcher
from freehold.history.model import (
    Author,
    EntryKind,
    InterruptedRestore,
    PathChange,
    PathVersion,
    RestorePlan,
    RestoreResult,
    RestoreStep,
    RevertArguments,
    SessionTurn,
)
from freehold.history.names import show_name
from freehold.history.restore_plan import plan_places, plan_restore
from freehold.history.restore_runner import RestoreRunner
from freehold.history.revert import Choice, RevertPlanner, Wanted, get_place, is_same_state
from freehold.history.slices import sort_in_slices
from freehold.history.staging_area import TEMPORARY_PREFIX
from freehold.history.states import Places

NamePath = tuple[bytes, ...]


class UndoOperations:
    """Plans and carries out undo, redo, restore and revert. The caller holds the lock of history."""

    def __init__(
        self, db: sqlite3.Connection, contents: ContentStore, runner: RestoreRunner, ignored: IgnoreMatcher | None
    ) -> None:
        self._db = db
        self._contents = contents
        self._runner = runner
        self._ignored = ignored
        self._entries = EntryWriter(db)
        self._places = Places(db)
        self._reader = ContentReader(db, contents.folder)

    # Targets.

    def undo_target(self, entry: int | None) -> tuple[int, int]:
        """The entry that is undone, and the entry whose state is restored."""
        undone = entry if entry is not None else self._entries.get(self._head()).equals
        self._entries.get(undone)
        target = self._entries.before(undone)
        if target is None:
            raise FreeholdError(
                "history.nothing-to-undo",
                f"Entry {undone} is the oldest entry; there is no earlier state to go back to",
                hint="freehold log lists the entries",
            )
        return undone, target

    def redo_target(self) -> int:
        """The entry whose state is restored."""
        target, _ = self._entries.read_redo(self._head())
        if target is None:
            raise FreeholdError(
                "history.nothing-to-redo",
                "There is nothing to redo; the last entry is not an undo",
                hint="To return to another state: freehold restore ENTRY",
            )
        return target

    def _head(self) -> int:
        head = self._entries.newest()
        if head == 0:
            raise FreeholdError(
                "history.empty",
                "The history has no entries yet",
                hint="The first one is made when Freehold starts",
            )
        return head

    # Plans.

    def steps_to(self, target: int, paths: Sequence[NamePath] = ()) -> list[RestoreStep]:
        steps = plan_restore(self._places, target, self._entries.newest(), paths)
        if self._ignored is None:
            return steps
        folders = IgnoredFolders(self._ignored)
        return [step for step in steps if not self._is_ignored(step, folders)]

    def _is_ignored(self, step: RestoreStep, folders: IgnoredFolders) -> bool:
        """Ignored paths are not recorded, so a restore must not touch them."""
        version = step.live or step.target
        assert self._ignored is not None
        assert version is not None
        return folders.has(step.path[:-1]) or self._ignored(step.path, version.mode)

    def plan(self, kind: EntryKind, target: int, paths: Sequence[NamePath] = ()) -> RestorePlan:
        self._entries.get(target)
        return RestorePlan(kind, target, tuple(self.steps_to(target, paths)))

    def plan_revert(
        self, entry: int, choose: Mapping[NamePath, Choice], since: int | None = None, of: SessionTurn | None = None
    ) -> tuple[RestorePlan, Wanted]:
        _, before = self.undo_target(entry)
        if since is not None:
            if not since < entry:
                raise FreeholdError(
                    "history.bad-request",
                    f"Entry {since} does not come before entry {entry}",
                    hint="Give an earlier entry",
                )
            before = self._entries.get(since).id
        for path, choice in choose.items():
            if choice not in ("old", "mine"):
                raise FreeholdError(
                    "history.bad-choice",
                    f"'{choice}' is not a valid choice for {show_name(b'/'.join(path)) or 'a conflict'}",
                    hint="Choose old or mine",
                )
        try:
            with transaction(self._db):
                planner = RevertPlanner(self._places, self._reader, self._contents.add_content)
                of = of if since is not None else None
                changes, between = self._changes(before, entry, of)
                wanted, conflicts = planner.plan_revert(before, changes, choose, between)
                self._contents.flush()
                self._contents.sync()
        except BaseException:
            self._contents.reload()
            raise
        steps = plan_places(self._places, wanted.items())
        entries = self._entries.between(before, entry) if of is not None else []
        shared = of is not None and any(of.has_made(each.who) and each.who.beside for each in entries)
        return RestorePlan("revert", before, tuple(steps), tuple(conflicts), shared), wanted

    def _changes(self, before: int, entry: int, of: SessionTurn | None) -> tuple[list[PathChange], set[int]]:
        """The changes between two entries, or only those of one turn, and the places that others changed in between."""
        if of is None:
            return self._places.list_changes(before, entry), set()
        found: dict[int, PathChange] = {}
        between: set[int] = set()
        for each in self._entries.between(before, entry):
            if not of.has_made(each.who):
                continue
            for change in self._places.list_changes(self._entries.before(each.id) or 0, each.id):
                place = get_place(change)
                first = found.get(place)
                if first is not None and not is_same_state(first.new, change.old):
                    between.add(place)
                found[place] = change if first is None else replace(change, old=first.old)
        return list(found.values()), between

    # Execution.

    def undo(self, entry: int | None, who: Author) -> RestoreResult:
        head = self._head()
        undone, target = self.undo_target(entry)
        return self._runner.carry_out(
            "undo", target, lambda: self.steps_to(target), who, f"undo of entry {undone}", self._end_undo(head, target)
        )

    def _end_undo(self, head: int, target: int) -> Callable[[int], None]:
        """What an undo that began at entry `head` sets in its own entry, so that it can be redone."""
        redo_to, _ = self._entries.read_redo(head)
        further = head if redo_to is not None else None
        undone = self._entries.get(head).equals
        return lambda new: self._entries.set_equal_state(new, self._entries.get(target).equals, undone, further)

    def redo(self, who: Author) -> RestoreResult:
        head = self._head()
        target = self.redo_target()
        why = f"redo of entry {target}"
        return self._runner.carry_out(
            "redo", target, lambda: self.steps_to(target), who, why, self._end_redo(head, target)
        )

    def _end_redo(self, head: int, target: int) -> Callable[[int], None]:
        _, further = self._entries.read_redo(head)
        after, after_next = self._entries.read_redo(further) if further is not None else (None, None)
        return lambda new: self._entries.set_equal_state(new, target, after, after_next)

    def restore(self, entry: int, paths: Sequence[NamePath], who: Author) -> RestoreResult:
        self._entries.get(entry)
        named = ", ".join(show_name(b"/".join(path)) for path in paths[:3]) + (", …" if len(paths) > 3 else "")
        why = f"restore of entry {entry}" + (f": {named}" if paths else "")
        return self._runner.carry_out("restore", entry, lambda: self.steps_to(entry, paths), who, why, paths=paths)

    def revert(
        self,
        entry: int,
        choose: Mapping[NamePath, Choice],
        who: Author,
        since: int | None = None,
        of: SessionTurn | None = None,
    ) -> RestoreResult:
        plan, wanted = self.plan_revert(entry, choose, since, of)
        if plan.conflicts:
            first = show_name(b"/".join(plan.conflicts[0].path))
            raise FreeholdError(
                "history.conflicts",
                f"{len(plan.conflicts)} of the paths that entry {entry} changed were changed again later ({first}: {plan.conflicts[0].reason}). Nothing was written",
                hint=f"freehold revert {entry} --dry-run lists them; decide with --choose {first}=old or --choose {first}=mine, or --choose old for all",
            )
        chosen = tuple((b"/".join(path), side) for path, side in choose.items())
        return self._runner.carry_out(
            "revert", plan.target, lambda: plan_places(self._places, wanted.items()), who, f"revert of entry {entry}",
            revert=RevertArguments(entry, since, of, chosen),
        )  # fmt: skip

    def recover(self, *, finish: bool, who: Author) -> RestoreResult:
        """After an interrupted restore: finish it, or return to the state before it. Its state is recorded already."""
        found = self._entries.read_intent()
        if found is None:
            raise FreeholdError(
                "history.nothing-interrupted", "There is no interrupted restore", hint="freehold log lists the entries"
            )
        intent, token = found
        if finish and intent.kind == "revert":
            return self._revert_again(intent, who)
        target = intent.target if finish else intent.before
        paths = tuple(tuple(path.split(b"/")) for path in intent.paths)
        temporary = self._db.execute(
            "SELECT id FROM place WHERE name >= ? AND name < ?",
            (TEMPORARY_PREFIX + token.encode(), TEMPORARY_PREFIX + token.encode() + b"\xff"),
        )
        leftovers: list[tuple[int, PathVersion | None]] = [(row[0], None) for row in temporary]

        def steps() -> list[RestoreStep]:
            some = {step.place: step for step in [*self.steps_to(target, paths), *plan_places(self._places, leftovers)]}
            return sort_in_slices(some.values(), lambda step: step.path)

        if finish and intent.kind in ("undo", "redo"):
            end = (self._end_undo if intent.kind == "undo" else self._end_redo)(intent.before, target)
            return self._runner.carry_out(intent.kind, target, steps, who, f"{intent.why}, finished", end)
        why = f"interrupted {intent.kind}, {'finished' if finish else 'reversed'}"
        return self._runner.carry_out("restore", target, steps, who, why, paths=paths)

    def _revert_again(self, intent: InterruptedRestore, who: Author) -> RestoreResult:
        """A revert keeps later changes, so it cannot be finished from the middle: go back, then revert again."""
        asked = intent.revert
        if asked is None:
            raise FreeholdError(
                "history.unfinished",
                "This revert was interrupted in an earlier version of Freehold and cannot be finished",
                hint="freehold history recover --back, then revert again",
            )
        self.recover(finish=False, who=who)
        choose = {tuple(path.split(b"/")) if path else (): side for path, side in asked.choose}
        return self.revert(asked.entry, choose, who, asked.since, asked.of)
