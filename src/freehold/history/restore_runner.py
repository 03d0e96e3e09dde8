"""Carries out a plan and records the result as an entry: in rounds, until what was planned is there or the reasons are known."""

import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.history.contents import ContentReader
from freehold.history.database import open_reader, transaction
from freehold.history.entries import EntryWriter
from freehold.history.fates import list_final_fates
from freehold.history.journal_space import JournalSpace, refuse_restore
from freehold.history.model import (
    UNKNOWN,
    Author,
    EntryKind,
    InterruptedRestore,
    RestoreResult,
    RestoreStep,
    RevertArguments,
)
from freehold.history.names import show_name
from freehold.history.new_files import is_disk_full
from freehold.history.restore import CHANGED_MEANWHILE, RestoreContext, Restorer
from freehold.history.restore_control import RestoreControl
from freehold.history.set_aside import SetAside
from freehold.history.snapshot import STORE_ERRORS, SnapshotWriter
from freehold.history.staging_area import StagingArea
from freehold.history.states import Places
from freehold.history.tree_reader import TrustedFiles

NamePath = tuple[bytes, ...]
MAX_ROUNDS = 3


class RestoreRunner:
    """The caller holds the lock of history. With `ignores`, the time of a folder may be set by files that are not recorded."""

    def __init__(
        self,
        db: sqlite3.Connection,
        roots: Mapping[bytes, Path],
        snapshots: SnapshotWriter,
        chunks: Path,
        staging: StagingArea,
        space: JournalSpace,
        aside: Path,
        *,
        ignores: bool,
    ) -> None:
        self._db = db
        self._roots = roots
        self._snapshots = snapshots
        self._chunks = chunks
        self._staging = staging
        self._space = space
        self._aside = aside
        self._ignores = ignores
        self._entries = EntryWriter(db)
        self._places = Places(db)
        self._reader = ContentReader(db, chunks)
        self._database = Path(db.execute("PRAGMA database_list").fetchone()[2])
        self.control = RestoreControl("", "restore")
        """Of the restore that the caller begins next."""

    def carry_out(
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
            self._open_reader,
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
        with Restorer(context, steps, written, force=last) as restorer:
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
                written=written,
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
                    intent.kind, intent.who, intent.why, always=True, only=only, written=written, rows_only=rows_only,
                    complete=complete_restore,
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

    def _open_reader(self) -> ContentReader:
        """With a connection of its own. The caller closes it."""
        return ContentReader(open_reader(self._database), self._chunks)

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

    def _is_time_unreliable(self, step: RestoreStep) -> bool:
        """True for the time of a folder that may contain ignored files: a write to one of them changes that time."""
        return self._ignores and step.is_only_folder_time
