"""`History`: records the states of the persistent folders and restores them. The entry point of this package."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from freehold.history.change_set import ChangeSet, ChangeSets
from freehold.history.contents import ContentReader, ContentStore
from freehold.history.database import (
    allocate_reserve,
    drop_incomplete_entries,
    open_database,
    save_tracked_folders,
)
from freehold.history.entries import EntryLog, EntryWriter
from freehold.history.garbage_collection import GarbageCollector
from freehold.history.history_reader import HistoryReader
from freehold.history.ignore_rules import IgnoreMatcher, compile_ignore_rules
from freehold.history.journal_space import JournalSpace
from freehold.history.maintenance import MaintenanceThread
from freehold.history.memory_pause import trim_memory
from freehold.history.model import (
    UNKNOWN,
    Author,
    AuthorKind,
    CancelOutcome,
    CollectionResult,
    EntryKind,
    EntryRecord,
    HistoryNotice,
    InterruptedRestore,
    PathChange,
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
from freehold.history.restore_requests import RestoreRequests
from freehold.history.restore_runner import RestoreRunner
from freehold.history.retention import Retention
from freehold.history.retention_clock import RetentionClock
from freehold.history.revert import Choice
from freehold.history.set_aside import measure_set_aside, salvage_staging
from freehold.history.settings import HistorySettings
from freehold.history.snapshot import SnapshotWriter
from freehold.history.snapshot_recorder import MarkPhase, NotePhase, SnapshotRecorder
from freehold.history.staging_area import StagingArea
from freehold.history.states import Places
from freehold.history.stream import ChangeStream
from freehold.history.undo import UndoOperations
from freehold.history.watcher import Watcher
from freehold.history.working_copy import WorkingCopies, WorkingCopy


class History(HistoryReader):
    """Synchronous and thread-safe: call it from threads. Reading the log never waits for a snapshot.

    Only one process at a time may open a history folder: the keeper, or a command that holds the home's lock.
    `start` watches the folders; without it every snapshot scans everything. `on_notice` receives messages for the owner.
    Working copies are made in the folder `copies`; None: beside the history.
    """

    def __init__(
        self,
        folder: Path,
        roots: Mapping[str, Path],
        settings: HistorySettings | None = None,
        *,
        on_notice: Callable[[HistoryNotice], None] = lambda notice: None,
        copies: Path | None = None,
    ) -> None:
        self.folder = folder
        self.settings = settings or HistorySettings()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        chunks = folder / "chunks"
        chunks.mkdir(mode=0o700, exist_ok=True)
        self._lock = threading.RLock()
        allocate_reserve(folder / "reserve")
        self._db = open_database(folder / "history.db")
        incomplete = drop_incomplete_entries(self._db)
        self._entries = EntryWriter(self._db)
        super().__init__(folder, {name.encode(): path for name, path in roots.items()}, self._entries, self._lock)
        self.set_aside = folder / "set-aside"
        salvage_staging(folder / "staging", self.set_aside, self._entries, ContentReader(self._db, chunks))
        self._staging = StagingArea(folder / "staging")
        self.stream = ChangeStream()
        self._watcher: Watcher | None = None
        self._maintenance: MaintenanceThread | None = None
        self._closed = False
        self._notices = Notices(self._db, self._lock, on_notice)
        contents = ContentStore(self._db, chunks)
        self._collector = GarbageCollector(self._db, self._lock, contents)
        clock = RetentionClock(self._db)
        grace = self.settings.quota_grace
        self._retention = Retention(self._lock, self._collector, clock, self._notices, self._read_quota, grace)
        ignored = compile_ignore_rules(self.settings.ignore)
        self._snapshots = SnapshotWriter(self._db, contents, self.roots, reserve=folder / "reserve", ignored=ignored)
        self._snapshots.room = self._measure_room
        rates = AuthorRates(lambda: self.settings.rate_for(folder))
        self._recorder = SnapshotRecorder(
            self._lock, self._entries, self._snapshots, rates, self._retention, self._notices
        )
        self._restores = self._make_restores(contents, ignored)
        self._copies = WorkingCopies(
            self._db, self._lock, contents, roots.get("workspace", folder), copies or folder.parent / "copies",
            self.settings.ignore, self._measure_room,
        )  # fmt: skip
        self._copies.remove_strays()
        save_tracked_folders(self._db, tuple(roots), self.settings.ignore)
        if incomplete:
            self._notices.add(
                "history.half-taken",
                "A snapshot was interrupted when the keeper last ended. It was dropped; the state before it is intact",
            )
        self._restores.tell_interrupted()

    def _make_restores(self, contents: ContentStore, ignored: IgnoreMatcher | None) -> RestoreRequests:
        space = JournalSpace(self._db, self.folder / "history.db", self.folder / "reserve")
        runner = RestoreRunner(
            self._db,
            self.roots,
            self._snapshots,
            contents.folder,
            self._staging,
            space,
            self.set_aside,
            ignores=ignored is not None,
        )
        return RestoreRequests(
            self._lock,
            self.roots,
            self._entries,
            self._recorder,
            UndoOperations(self._db, contents, runner, ignored),
            runner,
            self._staging,
            space,
            self._notices,
            self.set_aside,
        )

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
            self._restores.empties_staging = False
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
        return self._recorder.snapshot(kind, who, why)

    def mark(self, phase: MarkPhase, kind: EntryKind = "turn", who: Author = UNKNOWN, why: str = "") -> SnapshotResult:
        """Called before and after a turn or a command. Changes found after it are attributed to `who`, earlier ones are not."""
        return self._recorder.mark(phase, kind, who, why)

    def note(self, phase: NotePhase, who: Author, why: str = "") -> None:
        """Called before and after a small action, such as saving a file, so that it is not attributed to someone else.

        An entry is made for it only while someone else is active; otherwise the next entry names `who` and `why`.
        A longer activity is noted with `during`, any number of times.
        """
        self._recorder.note(phase, who, why)

    def forget_activities(self, by: AuthorKind) -> None:
        """Forget activities of this kind. Called by the process that runs them, when it starts."""
        self._recorder.forget_activities(by)

    def set_good(self, entry: int | None = None, *, good: bool = True) -> EntryRecord:
        """Mark an entry (by default the newest) as known good, or remove the mark. The latest marked entry is never dropped."""
        with self._lock:
            found = self._entries.get(entry if entry is not None else self._entries.newest())
            self._entries.set_good(found.id, good)
            return replace(found, good=good)

    # Undo, redo, restore and revert.

    def plan_undo(self, entry: int | None = None) -> RestorePlan:
        """What `undo` would do. Unrecorded changes are recorded first, so that the plan is exact."""
        return self._restores.plan_undo(entry)

    def undo(self, entry: int | None = None, who: Author = UNKNOWN, *, restore_id: str | None = None) -> RestoreResult:
        """Restore the state before `entry`; by default the state before the last entry that is not undone yet.

        Without `entry`, an undo that was interrupted is finished: to ask again never undoes an undo. `restore_id` is
        the caller's own name for this undo; see `cancel_restore`.
        """
        return self._restores.undo(entry, who, restore_id)

    def plan_redo(self) -> RestorePlan:
        return self._restores.plan_redo()

    def redo(self, who: Author = UNKNOWN, *, restore_id: str | None = None) -> RestoreResult:
        """Take back the last undo. A redo that was interrupted is finished."""
        return self._restores.redo(who, restore_id)

    def plan_restore(self, entry: int, paths: Sequence[str] = ()) -> RestorePlan:
        return self._restores.plan_restore(entry, paths)

    def restore(
        self, entry: int, paths: Sequence[str] = (), who: Author = UNKNOWN, *, restore_id: str | None = None
    ) -> RestoreResult:
        """Restore the state of `entry`: all of it, or only these paths."""
        return self._restores.restore(entry, paths, who, restore_id)

    def plan_revert(
        self,
        entry: int,
        choose: Mapping[str, Choice] | None = None,
        since: int | None = None,
        of: SessionTurn | None = None,
    ) -> RestorePlan:
        return self._restores.plan_revert(entry, choose, since, of)

    def revert(
        self,
        entry: int,
        choose: Mapping[str, Choice] | None = None,
        who: Author = UNKNOWN,
        since: int | None = None,
        of: SessionTurn | None = None,
        *,
        restore_id: str | None = None,
    ) -> RestoreResult:
        """Take back what `entry` changed, or everything after `since` up to it, and keep what came later.

        With `of`, only the changes of that turn. `choose` maps a path in conflict to "old" (as before the entry) or
        "mine" (as it is now); the key "" means every path. Raises `history.conflicts`, and writes nothing, while a
        conflict has no choice.
        """
        return self._restores.revert(entry, choose, who, since, of, restore_id)

    def interrupted(self) -> InterruptedRestore | None:
        """The restore that had not ended when the process last ended, if any."""
        if self._restores.is_running:
            return None
        with self._reading:
            found = EntryLog(self._reader_db).read_intent()
            return found[0] if found else None

    def recover(self, *, finish: bool, who: Author = UNKNOWN, restore_id: str | None = None) -> RestoreResult:
        """Finish an interrupted restore, or return to the state before it."""
        return self._restores.recover(finish, who, restore_id)

    # Working copies.

    def check_out(self, name: str, folder: str | None, entry: int | None = None) -> WorkingCopy:
        """Make a copy of a folder as `entry` has it; by default the present state is recorded first, and copied.

        Without a folder the copy is empty. What is ignored now is left out, also if the entry has it.
        """
        path = None if folder is None else find_path(folder, self.roots)
        if entry is None:
            entry = self.snapshot(why=f"found before a copy for {name}").entry
        elif folder is not None:
            self.find_folder(folder, entry)
        return self._copies.check_out(name, path, entry)

    def find_folder(self, folder: str, entry: int) -> EntryRecord:
        """The entry. Raises what `check_out` would raise because of the folder or the entry, and makes nothing."""
        path = find_path(folder, self.roots)
        with self._reading:
            found = EntryLog(self._reader_db).get(entry)
            self._copies.find_folder(Places(self._reader_db), path, entry)
        return found

    def collect_copy(self, name: str) -> ChangeSet:
        """Store what was changed in a copy, and remove the copy. Nothing may write to it any more. Idempotent."""
        return self._copies.collect(name)

    def read_change_set(self, name: str) -> tuple[ChangeSet, list[PathChange]]:
        """Raises `history.not-found`. A set that is merged has no changes any more."""
        with self._reading:
            sets = ChangeSets(self._reader_db)
            return sets.get(name), sets.read(name)

    def plan_merge(self, name: str) -> RestorePlan:
        """What `merge` would do, with the conflicts."""
        return self._restores.plan_merge(name)

    def merge(
        self, name: str, who: Author = UNKNOWN, why: str = "", *, force: bool = False, restore_id: str | None = None
    ) -> RestoreResult | None:
        """Bring the changes of a set into the tree, as one entry. None when that has been done already.

        Raises `history.conflicts`, and writes nothing, when others changed the same lines, unless `force`.
        """
        if self.read_change_set(name)[0].merged is not None:
            return None
        return self._restores.merge(name, force=force, who=who, why=why, restore_id=restore_id)

    def drop_copy(self, name: str) -> None:
        """Forget a copy and its changes. Idempotent."""
        self._copies.drop(name)

    def list_restores(self) -> tuple[RestoreProgress, ...]:
        """The restores that run or wait for their turn, the oldest first. Never waits."""
        return self._restores.list_progress()

    def cancel_restore(self, restore_id: str) -> CancelOutcome:
        """Cancel this restore unless it changes files already. Never waits.

        One that was cancelled raises `history.cancelled` where it was called.
        """
        return self._restores.cancel(restore_id)

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

    def release_memory(self) -> None:
        """After long work: give back what SQLite and the allocator keep for later."""
        for lock, db in ((self._lock, self._db), (self._reading, self._reader_db)):
            if lock.acquire(blocking=False):
                try:
                    db.execute("PRAGMA shrink_memory")
                finally:
                    lock.release()
        trim_memory()

    # Tasks of the maintenance thread.

    def take_quiet_snapshot(self, why: str) -> None:
        self._recorder.take_quiet_snapshot(why)

    def retry_unstored(self) -> None:
        self._recorder.retry_unstored()

    def empty_staging(self) -> None:
        """Not during a restore, which the owner waits for."""
        if not self._restores.is_running:
            self._staging.empty_trash()

    def collect_on_schedule(self) -> None:
        self.collect()
