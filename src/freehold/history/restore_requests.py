"""What the owner asks for: undo, redo, restore and revert, each planned or carried out, one at a time, and cancelled on request."""

import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.history.entries import EntryWriter
from freehold.history.journal_space import JournalSpace, refuse_restore
from freehold.history.memory_pause import postpone_collection
from freehold.history.model import (
    Author,
    CancelOutcome,
    EntryKind,
    InterruptedRestore,
    RestorePlan,
    RestoreProgress,
    RestoreResult,
    SessionTurn,
)
from freehold.history.names import find_path
from freehold.history.notices import Notices
from freehold.history.restore_control import RestoreControl, RestoreControls
from freehold.history.restore_runner import RestoreRunner
from freehold.history.revert import Choice
from freehold.history.snapshot_recorder import SnapshotRecorder
from freehold.history.staging_area import StagingArea
from freehold.history.undo import UndoOperations

INTERRUPTED_CODE = "history.interrupted"
SET_ASIDE_CODE = "history.set-aside"


class RestoreRequests:
    """Thread-safe: each request waits for the lock of history. Every request records the present state first."""

    def __init__(
        self,
        lock: threading.RLock,
        roots: Mapping[bytes, Path],
        entries: EntryWriter,
        recorder: SnapshotRecorder,
        operations: UndoOperations,
        runner: RestoreRunner,
        staging: StagingArea,
        space: JournalSpace,
        notices: Notices,
        set_aside: Path,
    ) -> None:
        self._lock = lock
        self._roots = roots
        self._entries = entries
        self._recorder = recorder
        self._operations = operations
        self._runner = runner
        self._staging = staging
        self._space = space
        self._notices = notices
        self._set_aside = set_aside
        self._controls = RestoreControls()
        self.is_running = False
        self.empties_staging = True
        """Whether each restore deletes what it displaced. False when the maintenance thread does that."""

    # Plans: nothing is written but an entry with the present state.

    def plan_undo(self, entry: int | None) -> RestorePlan:
        with self._lock:
            self._recorder.record_present("undo", self._space)
            unfinished = self._find_unfinished("undo", lambda _: entry is None)
            target = unfinished.target if unfinished else self._operations.undo_target(entry)[1]
            return self._operations.plan("undo", target)

    def plan_redo(self) -> RestorePlan:
        with self._lock:
            self._recorder.record_present("redo", self._space)
            unfinished = self._find_unfinished("redo")
            return self._operations.plan("redo", unfinished.target if unfinished else self._operations.redo_target())

    def plan_restore(self, entry: int, paths: Sequence[str]) -> RestorePlan:
        with self._lock:
            self._recorder.record_present("restore", self._space)
            return self._operations.plan("restore", entry, [find_path(path, self._roots) for path in paths])

    def plan_revert(
        self, entry: int, choose: Mapping[str, Choice] | None, since: int | None, of: SessionTurn | None
    ) -> RestorePlan:
        with self._lock:
            self._recorder.record_present("revert", self._space)
            return self._operations.plan_revert(entry, self._choices(choose), since, of)[0]

    # Requests.

    def undo(self, entry: int | None, who: Author, restore_id: str | None) -> RestoreResult:
        return self._restore_files(
            "undo", restore_id, lambda: self._operations.undo(entry, who), who, lambda _: entry is None
        )

    def redo(self, who: Author, restore_id: str | None) -> RestoreResult:
        return self._restore_files("redo", restore_id, lambda: self._operations.redo(who), who, lambda _: True)

    def restore(self, entry: int, paths: Sequence[str], who: Author, restore_id: str | None) -> RestoreResult:
        return self._restore_files(
            "restore",
            restore_id,
            lambda: self._operations.restore(entry, [find_path(path, self._roots) for path in paths], who),
            who,
        )

    def revert(
        self,
        entry: int,
        choose: Mapping[str, Choice] | None,
        who: Author,
        since: int | None,
        of: SessionTurn | None,
        restore_id: str | None,
    ) -> RestoreResult:
        return self._restore_files(
            "revert",
            restore_id,
            lambda: self._operations.revert(entry, self._choices(choose), who, since, of),
            who,
            lambda intent: intent.revert is not None and intent.revert.entry == entry,
        )

    def recover(self, finish: bool, who: Author, restore_id: str | None) -> RestoreResult:
        return self._carry_out("restore", restore_id, lambda: self._operations.recover(finish=finish, who=who))

    def list_progress(self) -> tuple[RestoreProgress, ...]:
        return self._controls.list_progress()

    def cancel(self, restore_id: str) -> CancelOutcome:
        return self._controls.cancel(restore_id)

    def tell_interrupted(self) -> None:
        """Give the owner a notice when a restore has begun and not ended."""
        found = self._entries.read_intent()
        if found is not None:
            intent = found[0]
            self._notices.add(
                INTERRUPTED_CODE,
                f"The {intent.kind} to entry {intent.target} was interrupted and has not finished. "
                f"Entry {intent.before} has the state before it",
                "To finish it: freehold history recover --finish. To return to the state before: freehold history recover --back",
            )

    def _choices(self, choose: Mapping[str, Choice] | None) -> dict[tuple[bytes, ...], Choice]:
        return {find_path(path, self._roots) if path else (): choice for path, choice in (choose or {}).items()}

    def _find_unfinished(
        self, verb: str, is_same: Callable[[InterruptedRestore], bool] = lambda intent: True
    ) -> InterruptedRestore | None:
        """The interrupted restore that asking for this verb once more finishes. The present state is recorded."""
        found = self._entries.read_intent()
        if found is None or found[0].kind != verb or not is_same(found[0]):
            return None
        intent = found[0]
        if intent.recorded != self._entries.newest():
            raise FreeholdError(
                "history.unfinished",
                f"The last {verb} was interrupted, and files were changed since",
                hint="To finish it: freehold history recover --finish. To return to the state before it: freehold history recover --back. To go elsewhere: freehold restore ENTRY",
            )
        return intent

    def _restore_files(
        self,
        verb: EntryKind,
        restore_id: str | None,
        action: Callable[[], RestoreResult],
        who: Author,
        is_same: Callable[[InterruptedRestore], bool] = lambda intent: False,
    ) -> RestoreResult:
        """An interrupted restore that was asked for in the same way is finished instead: see `is_same`."""

        def act() -> RestoreResult:
            unfinished = self._find_unfinished(verb, is_same) is not None
            return self._operations.recover(finish=True, who=who) if unfinished else action()

        return self._carry_out(verb, restore_id, act)

    def _carry_out(self, verb: EntryKind, restore_id: str | None, action: Callable[[], RestoreResult]) -> RestoreResult:
        """Record the present state, then run the action. It can be cancelled from the request to the first change."""
        control = self._controls.add(verb, restore_id)
        try:
            with control.wait_for(self._lock):
                self._recorder.record_present(verb, self._space)
                control.check()
                return self._run(control, action)
        except (sqlite3.Error, OSError) as error:  # before it began; later errors are explained where they happen
            raise refuse_restore(error) from error
        finally:
            self._controls.remove(control)

    def _run(self, control: RestoreControl, action: Callable[[], RestoreResult]) -> RestoreResult:
        self._runner.control = control
        self.is_running = True
        try:
            with postpone_collection():
                outcome = action()
        except FreeholdError:
            self.tell_interrupted()
            raise
        finally:
            self.is_running = False
            if self.empties_staging:
                self._staging.empty_trash()
        self._notices.remove(INTERRUPTED_CODE)  # the state that an interrupted restore left is an entry now
        if outcome.set_aside:
            self._notices.add(
                SET_ASIDE_CODE,
                f"{len(outcome.set_aside)} files that history does not have were moved aside by the last {outcome.entry.kind}",
                f"They are in {self._set_aside}; delete what you do not need",
            )
        return outcome
