"""Undo, redo, restore and revert: find the target state, plan the steps, write them, and record the result as an entry."""

import os
import secrets
import sqlite3
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.history.contents import ContentReader, ContentStore
from freehold.history.database import transaction
from freehold.history.entries import EntryWriter
from freehold.history.fates import list_final_fates
from freehold.history.folder_builder import is_disk_full
from freehold.history.ignore_rules import IgnoreMatcher
from freehold.history.journal_space import JournalSpace, refuse_restore
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
    RevertArguments,
    SessionTurn,
)
from freehold.history.names import show_name
from freehold.history.restore import CHANGED_MEANWHILE, RestoreContext, Restorer
from freehold.history.restore_control import RestoreControl
from freehold.history.restore_plan import plan_places, plan_restore
from freehold.history.revert import Choice, RevertPlanner, Wanted, get_place, is_same_state
from freehold.history.set_aside import SetAside
from freehold.history.slices import sort_in_slices
from freehold.history.snapshot import STORE_ERRORS, SnapshotWriter, TrustedFiles
from freehold.history.staging_area import TEMPORARY_PREFIX, StagingArea
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
        space: JournalSpace,
        aside: Path,
        ignored: IgnoreMatcher | None,
    ) -> None:
        self._db = db
        self._roots = roots
        self._snapshots = snapshots
        self._contents = contents
        self._staging = staging
        self._space = space
        self._aside = aside
        self._ignored = ignored
        self._entries = EntryWriter(db)
        self._places = Places(db)
        self._reader = ContentReader(db, contents.folder)
        self.control = RestoreControl("restore")
        """Of the restore that the caller begins next."""

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
        head = self._head()
        undone, target = self.undo_target(entry)
        return self._carry_out(
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
        return self._carry_out("redo", target, lambda: self.steps_to(target), who, why, self._end_redo(head, target))

    def _end_redo(self, head: int, target: int) -> Callable[[int], None]:
        _, further = self._entries.read_redo(head)
        after, after_next = self._entries.read_redo(further) if further is not None else (None, None)
        return lambda new: self._entries.set_equal_state(new, target, after, after_next)

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
        chosen = tuple((b"/".join(path), side) for path, side in choose.items())
        return self._carry_out(
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
            return self._carry_out(intent.kind, target, steps, who, f"{intent.why}, finished", end)
        why = f"interrupted {intent.kind}, {'finished' if finish else 'reversed'}"
        return self._carry_out("restore", target, steps, who, why, paths=paths)

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

    def _carry_out(
        self,
        kind: EntryKind,
        target: int,
        plan: Callable[[], list[RestoreStep]],
        who: Author,
        why: str,
        complete: Callable[[int], None] = lambda entry: None,
        paths: Sequence[NamePath] = (),
        revert: RevertArguments | None = None,
    ) -> RestoreResult:
        """Done, or not done: space for the journal and for all new files is taken before the first file changes."""
        token = secrets.token_hex(6)
        names = tuple(b"/".join(path) for path in paths)
        intent = InterruptedRestore(kind, time.time(), self._entries.newest(), target, names, who, why, None, revert)
        steps = plan()
        self._space.take(len(steps))
        earlier = self._entries.read_intent()
        aside = SetAside(self._aside, kind, token)
        pump = self._snapshots.watcher.read_events if self._snapshots.watcher is not None else lambda: None
        context = RestoreContext(
            self._roots,
            self._staging,
            self._reader,
            self._places,
            aside,
            token,
            target,
            self.control,
            pump,
            self._free_space,
        )
        try:
            self._record_intent(intent, token)
            return self._run_rounds(context, intent, plan, steps, complete, earlier)
        except (sqlite3.Error, OSError) as error:
            raise self._explain_interruption(intent, error) from error
        finally:
            aside.close()
            self._space.give_back()

    def _explain_interruption(self, intent: InterruptedRestore, error: Exception) -> FreeholdError:
        """The intent is in the store from before the first change until it is recorded."""
        if self._entries.read_intent() is not None:
            return FreeholdError(
                "history.restore-interrupted",
                f"The {intent.kind} was interrupted: {error}. Some files may have been changed",
                hint="To finish it: freehold history recover --finish. To return to the state before: freehold history recover --back",
            )
        if self._entries.newest() == intent.before:
            return refuse_restore(error)
        return FreeholdError(
            "history.restore-interrupted",
            f"It was done and recorded ({intent.why}), but the result cannot be read: {error}",
            hint="freehold log shows it",
        )

    def _run_rounds(
        self,
        context: RestoreContext,
        intent: InterruptedRestore,
        plan: Callable[[], list[RestoreStep]],
        steps: list[RestoreStep],
        complete: Callable[[int], None],
        earlier: tuple[InterruptedRestore, str] | None,
    ) -> RestoreResult:
        tried = {step.path: step for step in steps}
        failed: dict[NamePath, str] = {}
        written = TrustedFiles({}, {})

        def list_touched() -> list[NamePath]:
            """The paths to look at when there is no watcher: the tried paths and their folders, whose times were set."""
            if self._snapshots.watcher is not None:
                return []
            return list(tried.keys() | {path[:-1] for path in tried if len(path) > 1})

        for round_ in range(MAX_ROUNDS):
            last = round_ == MAX_ROUNDS - 1
            withdraw = partial(self._cancel, earlier) if round_ == 0 else None
            failed = self._run_round(context, steps, written, withdraw, last=last)
            if CHANGED_MEANWHILE not in failed.values() or last:
                break
            # A file that was written during the restore is recorded before it is replaced.
            if not self._record_meanwhile(intent, list_touched(), written):
                break
            steps = plan()
            tried.update((step.path, step) for step in steps)
        self.control.enter("recording")
        entry = self._close(intent, list_touched(), written, complete)
        remaining = [step for step in plan() if step.path in failed or not self._is_time_unreliable(step)]
        unsettled = {step.path: failed.get(step.path) or step.detail or "it has another state" for step in remaining}
        kept = {tuple(each.path.split(b"/")): show_name(os.fsencode(each.kept_as)) for each in context.aside.files}
        return RestoreResult(
            self._entries.get(entry),
            list_final_fates(tried, remaining, unsettled, kept),
            tuple((b"/".join(path), reason) for path, reason in unsettled.items()),
            tuple((b"/".join(path), kept_as) for path, kept_as in kept.items()),
        )

    def _run_round(
        self,
        context: RestoreContext,
        steps: list[RestoreStep],
        written: TrustedFiles,
        withdraw: Callable[[], None] | None,
        *,
        last: bool,
    ) -> dict[NamePath, str]:
        """The paths that failed, with the reasons.

        With `withdraw`, this is the first round: when the disk fills up before the first change, or the restore is
        cancelled, it is called and nothing has changed.
        """
        with Restorer(context, steps, force=last) as restorer:
            try:
                restorer.stage_steps()
                restorer.begin_changes()
            except OSError as error:
                if not is_disk_full(error) or withdraw is None:
                    return dict.fromkeys((step.path for step in steps), os.strerror(error.errno or 0))
                withdraw()
                raise refuse_restore(error) from error
            except BaseException:
                if withdraw is not None:
                    withdraw()
                raise
            restorer.apply_steps()
        written.files.update(restorer.trusted)
        written.nodes.update(restorer.nodes)
        return restorer.failed

    def _cancel(self, earlier: tuple[InterruptedRestore, str] | None) -> None:
        """Nothing has changed: the intent is withdrawn, and the space of what was staged is free again.

        The intent of an `earlier` restore that this one was to finish or reverse is there again.
        """
        self._staging.release()
        self._staging.empty_trash()
        # When this fails, the restore counts as interrupted, and can be finished or reversed.
        with suppress(sqlite3.OperationalError), transaction(self._db):
            if earlier is None:
                self._entries.remove_intent()
            else:
                self._entries.add_intent(*earlier)

    def _record_meanwhile(self, intent: InterruptedRestore, only: list[NamePath], written: TrustedFiles) -> bool:
        """False when it could not be recorded; then what was written is left in place and named in the result."""
        try:
            self._snapshots.record_snapshot(
                "snapshot",
                UNKNOWN,
                f"written during a {intent.kind}",
                only=only,
                trusted=written.files,
                adopted=written.nodes,
            )
        except FreeholdError as error:
            if error.code not in STORE_ERRORS:
                raise
            return False
        return True

    def _close(
        self,
        intent: InterruptedRestore,
        only: list[NamePath],
        written: TrustedFiles,
        complete: Callable[[int], None],
    ) -> int:
        """The entry of the restore. On a full disk, files that others wrote meanwhile are only noted in it."""

        def complete_restore(entry: int) -> None:
            self._entries.remove_intent()
            complete(entry)

        for rows_only in (False, True):
            try:
                return self._snapshots.record_snapshot(
                    intent.kind, intent.who, intent.why, always=True, only=only, trusted=written.files,
                    adopted=written.nodes, rows_only=rows_only, complete=complete_restore,
                ).entry  # fmt: skip
            except FreeholdError as error:
                if error.code not in STORE_ERRORS:
                    raise
                cause = error
        raise FreeholdError(
            "history.restore-not-recorded",
            f"The files were changed ({intent.why}), but the entry for it could not be written: {cause.message}",
            hint="Free disk space, then: freehold history recover --finish. To return to the state before: freehold history recover --back",
        ) from cause

    def _free_space(self) -> None:
        self._staging.empty_trash()
        self._space.free_space()

    def _record_intent(self, intent: InterruptedRestore, token: str) -> None:
        """The intent is on disk, with all earlier entries, before the first file is written."""
        self._db.execute("PRAGMA synchronous = FULL")
        try:
            with transaction(self._db):
                self._entries.add_intent(intent, token)
        except (sqlite3.OperationalError, OSError) as error:
            raise refuse_restore(error) from error
        finally:
            self._db.execute("PRAGMA synchronous = NORMAL")
