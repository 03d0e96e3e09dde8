"""Undo, redo, restore and revert: find the target state, plan the steps, write them, and record the result as an entry."""

import secrets
import sqlite3
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.history.contents import ContentReader, ContentStore
from freehold.history.database import transaction
from freehold.history.entries import EntryWriter
from freehold.history.fates import list_final_fates
from freehold.history.file_writer import TEMPORARY_PREFIX
from freehold.history.ignore_rules import IgnoreMatcher
from freehold.history.model import (
    UNKNOWN,
    Author,
    EntryKind,
    InterruptedRestore,
    PathChange,
    PathVersion,
    RestorePlan,
    RestoreResult,
    RestoreStep,
    SessionTurn,
)
from freehold.history.names import show_name
from freehold.history.restore import CHANGED_MEANWHILE, Restorer
from freehold.history.restore_plan import plan_places, plan_restore
from freehold.history.revert import Choice, RevertPlanner, Wanted, get_place, is_same_state
from freehold.history.snapshot import SnapshotWriter
from freehold.history.staging_area import StagingArea
from freehold.history.states import Places

NamePath = tuple[bytes, ...]
MAX_ROUNDS = 3


class UndoOperations:
    """Plans and carries out undo, redo, restore and revert. The caller holds the lock of history."""

    def __init__(
        self,
        db: sqlite3.Connection,
        roots: Mapping[bytes, Path],
        snapshots: SnapshotWriter,
        contents: ContentStore,
        staging: StagingArea,
        ignored: IgnoreMatcher | None,
    ) -> None:
        self._db = db
        self._roots = roots
        self._snapshots = snapshots
        self._contents = contents
        self._staging = staging
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

    def redo_target(self) -> tuple[int, int | None, int | None]:
        """The entry whose state is restored, and the two columns that the next redo needs."""
        target, further = self._entries.read_redo(self._head())
        if target is None:
            raise FreeholdError(
                "history.nothing-to-redo",
                "There is nothing to redo; the last entry is not an undo",
                hint="To return to another state: freehold restore ENTRY",
            )
        after, after_next = self._entries.read_redo(further) if further is not None else (None, None)
        return target, after, after_next

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
        return [step for step in steps if not self._is_ignored(step)] if self._ignored is not None else steps

    def _is_ignored(self, step: RestoreStep) -> bool:
        """Ignored paths are not recorded, so a restore must not touch them."""
        version = step.live or step.target
        assert self._ignored is not None
        assert version is not None
        above = range(2, len(step.path))
        return self._ignored(step.path, version.mode) or any(self._ignored(step.path[:n], stat.S_IFDIR) for n in above)

    def _is_time_unreliable(self, step: RestoreStep) -> bool:
        """True for the time of a folder that may contain ignored files: a write to one of them changes that time."""
        return self._ignored is not None and step.is_only_folder_time

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
        head = self._entries.get(self._head())
        undone, target = self.undo_target(entry)
        redo_to, _ = self._entries.read_redo(head.id)

        def complete(new: int) -> None:
            further = head.id if redo_to is not None else None
            self._entries.set_equal_state(new, self._entries.get(target).equals, head.equals, further)

        return self._carry_out("undo", target, lambda: self.steps_to(target), who, f"undo of entry {undone}", complete)

    def redo(self, who: Author) -> RestoreResult:
        target, after, after_next = self.redo_target()

        def complete(new: int) -> None:
            self._entries.set_equal_state(new, target, after, after_next)

        return self._carry_out("redo", target, lambda: self.steps_to(target), who, f"redo of entry {target}", complete)

    def restore(self, entry: int, paths: Sequence[NamePath], who: Author) -> RestoreResult:
        self._entries.get(entry)
        named = ", ".join(show_name(b"/".join(path)) for path in paths[:3]) + (", …" if len(paths) > 3 else "")
        why = f"restore of entry {entry}" + (f": {named}" if paths else "")
        return self._carry_out("restore", entry, lambda: self.steps_to(entry, paths), who, why, paths=paths)

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
        return self._carry_out(
            "revert", plan.target, lambda: plan_places(self._places, wanted.items()), who, f"revert of entry {entry}"
        )

    def recover(self, *, finish: bool, who: Author) -> RestoreResult:
        """After an interrupted restore: finish it, or return to the state before it."""
        found = self._entries.read_intent()
        if found is None:
            raise FreeholdError(
                "history.nothing-interrupted", "There is no interrupted restore", hint="freehold log lists the entries"
            )
        intent, token = found
        self._snapshots.record_snapshot("snapshot", UNKNOWN, f"state after an interrupted {intent.kind}")
        target = intent.target if finish else intent.before
        paths = tuple(tuple(path.split(b"/")) for path in intent.paths)
        temporary = self._db.execute(
            "SELECT id FROM place WHERE name >= ? AND name < ?",
            (TEMPORARY_PREFIX + token.encode(), TEMPORARY_PREFIX + token.encode() + b"\xff"),
        )
        leftovers: list[tuple[int, PathVersion | None]] = [(row[0], None) for row in temporary]

        def steps() -> list[RestoreStep]:
            some = {step.place: step for step in [*self.steps_to(target, paths), *plan_places(self._places, leftovers)]}
            return sorted(some.values(), key=lambda step: step.path)

        why = f"interrupted {intent.kind}, {'finished' if finish else 'reversed'}"
        return self._carry_out("restore", target, steps, who, why, paths=paths)

    def _carry_out(
        self,
        kind: EntryKind,
        target: int,
        plan: Callable[[], list[RestoreStep]],
        who: Author,
        why: str,
        complete: Callable[[int], None] = lambda entry: None,
        paths: Sequence[NamePath] = (),
    ) -> RestoreResult:
        token = secrets.token_hex(6)
        self._record_intent(
            InterruptedRestore(
                kind, time.time(), self._entries.newest(), target, tuple(b"/".join(path) for path in paths)
            ),
            token,
        )
        steps = plan()
        tried = {step.path: step for step in steps}
        failed: dict[NamePath, str] = {}
        trusted = {}

        def list_touched() -> list[NamePath]:
            """The paths to look at when there is no watcher: the tried paths and their folders, whose times were set."""
            if self._snapshots.watcher is not None:
                return []
            return sorted(tried.keys() | {path[:-1] for path in tried if len(path) > 1})

        pump = self._snapshots.watcher.read_events if self._snapshots.watcher is not None else lambda: None
        for round_ in range(MAX_ROUNDS):
            with Restorer(self._roots, self._staging, self._reader, self._places, token, target) as restorer:
                restorer.apply_steps(steps, pump)
            failed = restorer.failed
            trusted.update(restorer.trusted)
            if CHANGED_MEANWHILE not in failed.values() or round_ == MAX_ROUNDS - 1:
                break
            # A file that was written during the restore is recorded before it is replaced.
            self._snapshots.record_snapshot(
                "snapshot", UNKNOWN, f"written during a {kind}", only=list_touched(), trusted=trusted
            )
            steps = plan()
            tried.update((step.path, step) for step in steps)

        def complete_restore(entry: int) -> None:
            self._entries.remove_intent()
            complete(entry)

        mark = self._snapshots.record_snapshot(
            kind, who, why, always=True, only=list_touched(), trusted=trusted, complete=complete_restore
        )
        remaining = [step for step in plan() if step.path in failed or not self._is_time_unreliable(step)]
        unsettled = {step.path: failed.get(step.path) or step.detail or "it has another state" for step in remaining}
        return RestoreResult(
            self._entries.get(mark.entry),
            list_final_fates(tried, remaining, unsettled),
            tuple((b"/".join(path), reason) for path, reason in unsettled.items()),
        )

    def _record_intent(self, intent: InterruptedRestore, token: str) -> None:
        """The intent is on disk, with all earlier entries, before the first file is written."""
        self._db.execute("PRAGMA synchronous = FULL")
        try:
            with transaction(self._db):
                self._entries.add_intent(intent, token)
        finally:
            self._db.execute("PRAGMA synchronous = NORMAL")
