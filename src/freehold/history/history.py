"""`History`: records the states of the persistent folders and restores them. The entry point of this package."""

import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from freehold.errors import FreeholdError
from freehold.history.attribution import Attribution
from freehold.history.comparison import DIFF_SECONDS, Comparison
from freehold.history.contents import ContentReader, ContentStore
from freehold.history.database import (
    allocate_reserve,
    drop_incomplete_entries,
    open_database,
    open_reader,
    save_tracked_folders,
)
from freehold.history.diff import FileDiff
from freehold.history.entries import EntryLog, EntryWriter
from freehold.history.garbage_collection import GarbageCollector
from freehold.history.ignore_rules import compile_ignore_rules
from freehold.history.journal_space import JournalSpace, refuse_restore
from freehold.history.maintenance import MaintenanceThread
from freehold.history.memory_pause import postpone_collection
from freehold.history.model import (
    FLAG_OVER_RATE,
    UNKNOWN,
    Author,
    AuthorKind,
    CollectionResult,
    EntryKind,
    EntryRecord,
    HistoryNotice,
    InterruptedRestore,
    PathChange,
    PathVersion,
    RestorePlan,
    RestoreProgress,
    RestoreResult,
    SessionTurn,
    SnapshotResult,
    StoreSize,
)
from freehold.history.names import find_path
from freehold.history.notices import Notices
from freehold.history.rate import AuthorRates
from freehold.history.restore_control import RestoreControl, RestoreControls
from freehold.history.retention import Retention
from freehold.history.retention_clock import RetentionClock
from freehold.history.revert import Choice
from freehold.history.set_aside import SetAside, measure_set_aside
from freehold.history.settings import HistorySettings
from freehold.history.snapshot import NO_LIMIT, STORE_ERRORS, SnapshotWriter
from freehold.history.staging_area import StagingArea
from freehold.history.states import Places
from freehold.history.stream import ChangeStream
from freehold.history.undo import UndoOperations
from freehold.history.verification import VerificationResult, verify_store
from freehold.history.watcher import Watcher

LINE_COUNT_SECONDS = 0.1
INTERRUPTED_CODE = "history.interrupted"
RATE_CODE = "history.rate-exceeded"
UNSTORED_CODE = "history.not-stored"
SET_ASIDE_CODE = "history.set-aside"


class History:
    """Synchronous and thread-safe: call it from threads. Reading the log never waits for a snapshot.

    Only one process at a time may open a history folder: the keeper, or a command that holds the home's lock.
    `start` watches the folders; without it every snapshot scans everything. `on_notice` receives messages for the owner.
    """

    def __init__(
        self,
        folder: Path,
        roots: Mapping[str, Path],
        settings: HistorySettings | None = None,
        *,
        on_notice: Callable[[HistoryNotice], None] = lambda notice: None,
    ) -> None:
        self.folder = folder
        self.roots = {name.encode(): path for name, path in roots.items()}
        self.settings = settings or HistorySettings()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._chunks = folder / "chunks"
        self._chunks.mkdir(mode=0o700, exist_ok=True)
        self._lock = threading.RLock()
        allocate_reserve(folder / "reserve")
        self._db = open_database(folder / "history.db")
        incomplete = drop_incomplete_entries(self._db)
        self.set_aside = folder / "set-aside"
        self._salvage_staging(folder / "staging")
        self._staging = StagingArea(folder / "staging")
        self._reading = threading.RLock()
        self._reader_db = open_reader(folder / "history.db")
        self._contents = ContentStore(self._db, self._chunks)
        self._entries = EntryWriter(self._db)
        ignored = compile_ignore_rules(self.settings.ignore)
        self._snapshots = SnapshotWriter(
            self._db,
            self._contents,
            self.roots,
            reserve=folder / "reserve",
            ignored=ignored,
        )
        self._space = JournalSpace(self._db, folder / "history.db", folder / "reserve")
        self._operations = UndoOperations(
            self._db,
            self.roots,
            self._snapshots,
            self._contents,
            self._staging,
            self._space,
            self.set_aside,
            ignored,
        )
        self._attribution = Attribution()
        self.stream = ChangeStream()
        self._watcher: Watcher | None = None
        self._maintenance: MaintenanceThread | None = None
        self._closed = self._restoring = False
        self._controls = RestoreControls()
        self._collector = GarbageCollector(self._db, self._lock, self._chunks)
        self._notices = Notices(self._db, self._lock, on_notice)
        clock = RetentionClock(self._db)
        grace = self.settings.quota_grace
        self._retention = Retention(self._lock, self._collector, clock, self._notices, self._read_quota, grace)
        self._comparison = Comparison(self._reader_db, self._reading, self._entries, self._lock, self.roots, self.read)
        self._snapshots.room = self._measure_room
        self._rates = AuthorRates(lambda: self.settings.rate_for(folder))
        self._counted = self._entries.newest()
        save_tracked_folders(self._db, tuple(roots), self.settings.ignore)
        self._give_start_notices(incomplete)

    def __enter__(self) -> "History":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Watch the folders, and start the maintenance thread: quiet snapshots, regular scans, garbage collection."""
        with self._lock:
            watcher = Watcher(self.roots, self.stream)
            watcher.start()
            self._watcher = self._snapshots.watcher = watcher
            self._maintenance = MaintenanceThread(self, watcher, self.settings, self._notices.on_notice)
            self._maintenance.start()
        if watcher.degraded is not None:
            self._notices.add(
                "history.no-watches",
                f"Changes are found by scans only: {watcher.degraded}",
                "Raise the limit and restart the keeper",
            )
        else:
            self._notices.remove("history.no-watches")

    @property
    def degraded(self) -> str | None:
        """Why changes are found by scans instead of events; None when every folder is watched."""
        return self._watcher.degraded if self._watcher is not None else "the folders are not watched"

    def close(self) -> None:
        """Idempotent."""
        if self._closed:
            return
        self._closed = True
        if self._maintenance is not None:
            self._maintenance.close()
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = self._snapshots.watcher = None
        self.stream.close()
        with self._lock, self._reading:
            self._staging.close()
            self._reader_db.close()
            self._db.close()

    # Entries.

    def snapshot(self, kind: EntryKind = "snapshot", who: Author = UNKNOWN, why: str = "") -> SnapshotResult:
        """Record everything that was written before this call. Makes an entry only when something differs.

        Without `who` the author is found from the activities since the last entry.
        """
        with self._lock:
            self._record_interrupted()
            who, why = (
                self._attribution.find_author(why) if who == UNKNOWN else (self._attribution.add_concurrent(who), why)
            )
            return self._record_snapshot(kind, who, why)

    def _record_snapshot(self, kind: EntryKind, who: Author, why: str) -> SnapshotResult:
        rate = self._rates.measure_room(who) if self._entries.newest() else NO_LIMIT
        with postpone_collection():
            found = self._snapshots.record_snapshot(kind, who, why, rate=rate)
        self._attribution.reset()
        if rate != NO_LIMIT:
            self._rates.add(who, self._snapshots.added_bytes)
        self._tell_after_snapshot(who)
        return found

    def _tell_after_snapshot(self, who: Author) -> None:
        """What the owner must know is told when it happens."""
        self._retention.tell_if_crossed(self._snapshots.added_bytes)
        if FLAG_OVER_RATE in self._snapshots.flags:
            self._rates.note_refused(who)
            self._notices.add_once(RATE_CODE, self._rates.describe(who), "Stop the agent, or raise history.rate")
        unstored = self._snapshots.unstored
        if unstored:
            more = f" and {len(unstored) - 1} more" if len(unstored) > 1 else ""
            self._notices.add_once(
                UNSTORED_CODE,
                f"{unstored[0]}{more}. If it is changed or deleted, it cannot be brought back. It is tried again",
                "freehold log shows the entries; raise history.quota in freehold.toml if the quota is reached",
            )

    def _record_interrupted(self) -> None:
        """The state in which an interrupted restore was left belongs to who asked for it, as the journal says."""
        found = self._entries.read_intent()
        if found is None or found[0].recorded is not None:
            return
        intent = found[0]
        why = f"state after an interrupted {intent.kind}"
        left = self._snapshots.record_snapshot(
            "snapshot", intent.who, why, complete=self._entries.set_interrupted_state
        )
        if not left.changed:
            self._entries.set_interrupted_state(left.entry)

    def mark(
        self, phase: Literal["before", "after"], kind: EntryKind = "turn", who: Author = UNKNOWN, why: str = ""
    ) -> SnapshotResult:
        """Called before and after a turn or a command. Changes found after it are attributed to `who`, earlier ones are not."""
        with self._lock:
            if phase == "before":
                found = self.snapshot("snapshot", UNKNOWN, f"found before a {kind}")
                self._attribution.begin_activity(who, why)
                return found
            found = self.snapshot(kind, who, why)
            self._attribution.end_activity(who, why)
            self._attribution.reset()
            return found

    def note(self, phase: Literal["before", "during", "after"], who: Author, why: str = "") -> None:
        """Called before and after a small action, such as saving a file, so that it is not attributed to someone else.

        An entry is made for it only while someone else is active; otherwise the next entry names `who` and `why`.
        A longer activity is noted with `during`, any number of times.
        """
        with self._lock:
            is_active = self._attribution.is_anyone_active()
            if phase == "before":
                if is_active:
                    self.snapshot("snapshot", UNKNOWN, "found before a command")
                return
            if is_active and phase == "after":
                self._record_snapshot("command", who, why)
            else:
                self._attribution.note_activity(who, why)

    def forget_activities(self, by: AuthorKind) -> None:
        """Forget activities of this kind. Called by the process that runs them, when it starts."""
        with self._lock:
            self._attribution.forget_activities(by)

    def set_good(self, entry: int | None = None, *, good: bool = True) -> EntryRecord:
        """Mark an entry (by default the newest) as known good, or remove the mark. The latest marked entry is never dropped."""
        with self._lock:
            found = self._entries.get(entry if entry is not None else self._entries.newest())
            self._entries.set_good(found.id, good)
            return replace(found, good=good)

    def entry(self, entry: int) -> EntryRecord:
        with self._reading:
            return EntryLog(self._reader_db).get(entry)

    def newest(self) -> int:
        with self._reading:
            return EntryLog(self._reader_db).newest()

    def log(self, path: str | None = None, *, limit: int = 50, before: int | None = None) -> list[EntryRecord]:
        """Newest first. With a path, only the entries that changed it or anything below it."""
        with self._reading:
            log = EntryLog(self._reader_db)
            found = log.page(limit, before) if path is None else log.find_touching(self._place(path), limit, before)
        deadline = time.monotonic() + LINE_COUNT_SECONDS
        return [
            entry if entry.lines_added is not None else self._comparison.count_lines(entry, deadline - time.monotonic())
            for entry in found
        ]

    def changes(self, entry: int) -> list[PathChange]:
        """The changes of an entry, against the entry before it (for the oldest entry, against nothing)."""
        return self._comparison.list_changes(entry)

    def diff(
        self, entry: int, path: str | None = None, *, limit: int = 1000, seconds: float = DIFF_SECONDS
    ) -> tuple[list[FileDiff], int]:
        """The changes of an entry, line by line: at most `limit` files and `seconds` of work, and the number of all files."""
        return self._comparison.diff_changes(self.changes(entry), path, limit, seconds)

    def compare(
        self, old: int, new: int, path: str | None = None, *, limit: int = 1000, seconds: float = DIFF_SECONDS
    ) -> tuple[list[FileDiff], int]:
        """The differences between the states of two entries, in either direction; 0 is the state before the first entry."""
        return self._comparison.compare(old, new, path, limit, seconds)

    def last_good(self) -> int:
        """The newest entry that is marked as known good. Raises `history.not-found` when there is none."""
        with self._reading:
            found = EntryLog(self._reader_db).last_good()
        if found is None:
            raise FreeholdError(
                "history.not-found",
                "No entry is marked as known good",
                hint="Mark one in the history of the control center",
            )
        return found

    def before(self, entry: int) -> int:
        """The entry just before this one; 0 when there is none."""
        with self._reading:
            return EntryLog(self._reader_db).before(entry) or 0

    def version(self, entry: int, path: str) -> PathVersion | None:
        with self._reading:
            EntryLog(self._reader_db).get(entry)
            place = Places(self._reader_db).find(find_path(path, self.roots))
            return Places(self._reader_db).at(place, entry) if place is not None else None

    def read(self, content: int) -> bytes:
        with self._reading:
            return ContentReader(self._reader_db, self._chunks).read(content)

    def read_range(self, content: int, offset: int, length: int) -> bytes:
        with self._reading:
            return ContentReader(self._reader_db, self._chunks).read_range(content, offset, length)

    def _place(self, path: str) -> int:
        place = Places(self._reader_db).find(find_path(path, self.roots))
        if place is None:
            raise FreeholdError(
                "history.unknown-path",
                f"No entry contains {path}",
                hint="freehold log lists the entries",
            )
        return place

    # Undo, redo, restore and revert.

    def plan_undo(self, entry: int | None = None) -> RestorePlan:
        """What `undo` would do. Unrecorded changes are recorded first, so that the plan is exact."""
        with self._lock:
            self._record_present("undo")
            unfinished = self._find_unfinished("undo", lambda _: entry is None)
            target = unfinished.target if unfinished else self._operations.undo_target(entry)[1]
            return self._operations.plan("undo", target)

    def undo(self, entry: int | None = None, who: Author = UNKNOWN) -> RestoreResult:
        """Restore the state before `entry`; by default the state before the last entry that is not undone yet.

        Without `entry`, an undo that was interrupted is finished: to ask again never undoes an undo.
        """
        return self._restore_files("undo", lambda: self._operations.undo(entry, who), who, lambda _: entry is None)

    def plan_redo(self) -> RestorePlan:
        with self._lock:
            self._record_present("redo")
            unfinished = self._find_unfinished("redo")
            return self._operations.plan("redo", unfinished.target if unfinished else self._operations.redo_target())

    def redo(self, who: Author = UNKNOWN) -> RestoreResult:
        """Take back the last undo. A redo that was interrupted is finished."""
        return self._restore_files("redo", lambda: self._operations.redo(who), who, lambda _: True)

    def plan_restore(self, entry: int, paths: Sequence[str] = ()) -> RestorePlan:
        with self._lock:
            self._record_present("restore")
            return self._operations.plan("restore", entry, [find_path(path, self.roots) for path in paths])

    def restore(self, entry: int, paths: Sequence[str] = (), who: Author = UNKNOWN) -> RestoreResult:
        """Restore the state of `entry`: all of it, or only these paths."""
        return self._restore_files(
            "restore",
            lambda: self._operations.restore(entry, [find_path(path, self.roots) for path in paths], who),
            who,
        )

    def plan_revert(
        self,
        entry: int,
        choose: Mapping[str, Choice] | None = None,
        since: int | None = None,
        of: SessionTurn | None = None,
    ) -> RestorePlan:
        with self._lock:
            self._record_present("revert")
            return self._operations.plan_revert(entry, self._choices(choose), since, of)[0]

    def revert(
        self,
        entry: int,
        choose: Mapping[str, Choice] | None = None,
        who: Author = UNKNOWN,
        since: int | None = None,
        of: SessionTurn | None = None,
    ) -> RestoreResult:
        """Take back what `entry` changed, or everything after `since` up to it, and keep what came later.

        With `of`, only the changes of that turn. `choose` maps a path in conflict to "old" (as before the entry) or
        "mine" (as it is now); the key "" means every path. Raises `history.conflicts`, and writes nothing, while a
        conflict has no choice.
        """
        return self._restore_files(
            "revert",
            lambda: self._operations.revert(entry, self._choices(choose), who, since, of),
            who,
            lambda intent: intent.revert is not None and intent.revert.entry == entry,
        )

    def _choices(self, choose: Mapping[str, Choice] | None) -> dict[tuple[bytes, ...], Choice]:
        return {find_path(path, self.roots) if path else (): choice for path, choice in (choose or {}).items()}

    def _record_present(self, verb: str) -> None:
        """On a full disk the reserve is used for it. When that is not enough, nothing is changed."""
        why = f"found before {verb}"
        try:
            self.snapshot("snapshot", UNKNOWN, why)
        except FreeholdError as error:
            if error.code not in STORE_ERRORS:
                raise
            self._space.free_space()
            try:
                self.snapshot("snapshot", UNKNOWN, why)
            except FreeholdError as again:
                raise refuse_restore(again) if again.code in STORE_ERRORS else again from error

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
        action: Callable[[], RestoreResult],
        who: Author,
        is_same: Callable[[InterruptedRestore], bool] = lambda intent: False,
    ) -> RestoreResult:
        """An interrupted restore that was asked for in the same way is finished instead: see `is_same`."""

        def act() -> RestoreResult:
            unfinished = self._find_unfinished(verb, is_same) is not None
            return self._operations.recover(finish=True, who=who) if unfinished else action()

        return self._carry_out(verb, act)

    def _carry_out(self, verb: EntryKind, action: Callable[[], RestoreResult]) -> RestoreResult:
        """Record the present state, then run the action. It can be cancelled from the request to the first change."""
        control = self._controls.add(verb)
        try:
            with self._lock:
                control.check()
                self._record_present(verb)
                control.check()
                return self._run(control, action)
        except (sqlite3.Error, OSError) as error:  # before it began; later errors are explained where they happen
            raise refuse_restore(error) from error
        finally:
            self._controls.remove(control)

    def _run(self, control: RestoreControl, action: Callable[[], RestoreResult]) -> RestoreResult:
        self._operations.control = control
        self._restoring = True
        try:
            with postpone_collection():
                outcome = action()
        except FreeholdError:
            self._tell_interrupted()
            raise
        finally:
            self._restoring = False
            if self._maintenance is None:
                self._staging.empty_trash()
        self._notices.remove(INTERRUPTED_CODE)  # the state that an interrupted restore left is an entry now
        if outcome.set_aside:
            self._notices.add(
                SET_ASIDE_CODE,
                f"{len(outcome.set_aside)} files that history does not have were moved aside by the last {outcome.entry.kind}",
                f"They are in {self.set_aside}; delete what you do not need",
            )
        return outcome

    # Size and verification.

    def _read_quota(self) -> int:
        return self.settings.quota_for(self.folder)

    def _measure_room(self) -> int:
        """How many bytes one snapshot may add. The quota may be exceeded by a quarter, because old entries are not dropped at once."""
        quota = self._read_quota()
        return max(0, quota + quota // 4 - self._collector.measure_used())

    def size(self) -> StoreSize:
        return self._collector.measure_size(self._read_quota(), measure_set_aside(self.set_aside))

    def collect(self, *, now: float | None = None) -> CollectionResult:
        """Thin old entries and free their space. Entries are dropped for the quota only after the owner was told."""
        return self._retention.collect(now)

    def verify(self) -> VerificationResult:
        """Read and check everything in the store. It has its own connection, so nothing waits for it."""
        db = open_reader(self.folder / "history.db")
        try:
            return verify_store(db, self._chunks)
        finally:
            db.close()

    # Tasks of the maintenance thread.

    def take_quiet_snapshot(self, why: str) -> None:
        """Not while an author is over its rate: what was recorded before it is enough to undo its work."""
        with self._lock:
            if not self._rates.is_exceeded(self._attribution.find_author("")[0]):
                self._notices.remove(RATE_CODE)
                self.snapshot("quiet", UNKNOWN, why)

    def retry_unstored(self) -> None:
        """Try again to store what could not be stored before."""
        with self._lock:
            if Places(self._db).list_flagged(1):
                self.snapshot("quiet", UNKNOWN, "")
            else:
                self._notices.remove(UNSTORED_CODE)

    def empty_staging(self) -> None:
        """Not during a restore, which the owner waits for."""
        if not self._restoring:
            self._staging.empty_trash()

    def collect_on_schedule(self) -> None:
        self.collect()

    def count_lines(self) -> None:
        with self._reading:
            entries = EntryLog(self._reader_db).page(20, None)
        for entry in reversed(entries):
            if entry.id > self._counted:
                self._comparison.count_lines(entry, DIFF_SECONDS)
                self._counted = entry.id

    # After a crash.

    def interrupted(self) -> InterruptedRestore | None:
        """The restore that had not ended when the process last ended, if any."""
        if self._restoring:
            return None
        with self._reading:
            found = EntryLog(self._reader_db).read_intent()
            return found[0] if found else None

    def recover(self, *, finish: bool, who: Author = UNKNOWN) -> RestoreResult:
        """Finish an interrupted restore, or return to the state before it."""
        return self._carry_out("restore", lambda: self._operations.recover(finish=finish, who=who))

    # Progress.

    def get_progress(self) -> RestoreProgress | None:
        """Of the restore that runs now; None when none does. Never waits."""
        return self._controls.get_progress()

    def cancel_restores(self) -> tuple[int, int]:
        """Cancel each restore that has not changed a file. Returns how many were cancelled, and how many go on.

        One that was cancelled raises `history.cancelled` where it was called. Never waits.
        """
        return self._controls.cancel()

    def notices(self) -> list[HistoryNotice]:
        with self._reading:
            return EntryLog(self._reader_db).notices()

    def _give_start_notices(self, incomplete: int) -> None:
        if incomplete:
            self._notices.add(
                "history.half-taken",
                "A snapshot was interrupted when the keeper last ended. It was dropped; the state before it is intact",
            )
        self._tell_interrupted()

    def _tell_interrupted(self) -> None:
        found = self._entries.read_intent()
        if found is not None:
            intent = found[0]
            self._notices.add(
                INTERRUPTED_CODE,
                f"The {intent.kind} to entry {intent.target} was interrupted and has not finished. "
                f"Entry {intent.before} has the state before it",
                "To finish it: freehold history recover --finish. To return to the state before: freehold history recover --back",
            )

    def _salvage_staging(self, staging: Path) -> None:
        """What an interrupted restore had displaced and history does not have is set aside before staging is emptied."""
        found = EntryLog(self._db).read_intent()
        if found is None or not staging.is_dir():
            return
        aside = SetAside(self.set_aside, found[0].kind, found[1])
        reader = ContentReader(self._db, self._chunks)
        for folder in staging.iterdir():
            aside.salvage(folder, reader.has_content)
        aside.close()
