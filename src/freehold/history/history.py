"""`History`: every state of the kept folders, and the way back to each."""

import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal

from freehold.errors import FreeholdError
from freehold.history.aging import DAY, Aging
from freehold.history.collecting import Collected, Collector, Size, collect
from freehold.history.contents import ContentReader, Contents
from freehold.history.database import drop_half_taken, hold_reserve, open_database, open_reader, remember, transaction
from freehold.history.diffing import FileDiff, diff_change
from freehold.history.doing import Doing
from freehold.history.entries import EntryLog, EntryWriter
from freehold.history.housekeeping import Housekeeping
from freehold.history.ignoring import compile_patterns
from freehold.history.model import (
    UNKNOWN,
    By,
    Change,
    Entry,
    Interrupted,
    Kind,
    Mark,
    Notice,
    Outcome,
    Plan,
    Turn,
    Version,
    Who,
)
from freehold.history.names import find_path
from freehold.history.revert import Choice
from freehold.history.settings import Settings
from freehold.history.snapshots import Snapshots
from freehold.history.staging import Staging
from freehold.history.states import Places
from freehold.history.stream import ChangeStream
from freehold.history.undo import Undoing
from freehold.history.verifying import Verified, verify
from freehold.history.watching import Watcher

LINES_BUDGET = 0.1
DIFF_BUDGET = 5.0
MAX_COUNTED = 500
QUOTA_CODE = "history.quota-reached"
NEARLY_CODE = "history.quota-nearly"
CLOCK_CODE = "history.clock-ahead"


class History:
    """Synchronous and thread-safe; call it from threads. Reading the log never waits for a snapshot.

    One process at a time may hold a history folder: the keeper, or a command under the home's lock when no keeper runs.
    `start` watches the folders; without it every snapshot is a full scan.
    """

    def __init__(
        self,
        folder: Path,
        roots: Mapping[str, Path],
        settings: Settings | None = None,
        *,
        tell: Callable[[Notice], None] = lambda notice: None,
    ) -> None:
        self.folder = folder
        self.roots = {name.encode(): path for name, path in roots.items()}
        self.settings = settings or Settings()
        self._tell = tell
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._chunks = folder / "chunks"
        self._chunks.mkdir(mode=0o700, exist_ok=True)
        self._staging = Staging(folder / "staging")
        self._lock = threading.RLock()
        hold_reserve(folder / "reserve")
        self._db = open_database(folder / "history.db")
        half = drop_half_taken(self._db)
        self._reading = threading.RLock()
        self._reader_db = open_reader(folder / "history.db")
        self._contents = Contents(self._db, self._chunks)
        self._entries = EntryWriter(self._db)
        ignored = compile_patterns(self.settings.ignore)
        self._snapshots = Snapshots(
            self._db,
            self._contents,
            self.roots,
            largest=self.settings.largest_file,
            reserve=folder / "reserve",
            ignored=ignored,
        )
        self._undoing = Undoing(self._db, self.roots, self._snapshots, self._contents, self._staging, ignored)
        self._doing = Doing()
        self.stream = ChangeStream()
        self._watcher: Watcher | None = None
        self._housekeeping: Housekeeping | None = None
        self._closed = False
        self._restoring = False
        self._collector = Collector(self._db, self._lock, self._chunks)
        self._aging = Aging(self._db)
        self._snapshots.room = self._room
        self._counted = self._entries.newest()
        remember(self._db, tuple(roots), self.settings.ignore)
        self._say_what_happened(half)

    def __enter__(self) -> "History":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Watch the folders from now on, and do the chores: quiet snapshots, regular scans, collection."""
        with self._lock:
            watcher = Watcher(self.roots, self.stream)
            watcher.start()
            self._watcher = self._snapshots.watcher = watcher
            self._housekeeping = Housekeeping(self, watcher, self.settings, self._tell)
            self._housekeeping.start()
        if watcher.degraded is not None:
            self._notice(
                "history.no-watches",
                f"Changes are found by scanning: {watcher.degraded}",
                "Raise the limit and restart the keeper",
            )
        else:
            self._settle("history.no-watches")

    @property
    def degraded(self) -> str | None:
        """Why changes are found by scanning instead of by events; None while all is well."""
        return self._watcher.degraded if self._watcher is not None else "nothing is watching"

    def close(self) -> None:
        """Idempotent."""
        if self._closed:
            return
        self._closed = True
        if self._housekeeping is not None:
            self._housekeeping.close()
        if self._watcher is not None:
            self._watcher.close()
            self._watcher = self._snapshots.watcher = None
        self.stream.close()
        with self._lock, self._reading:
            self._staging.close()
            self._reader_db.close()
            self._db.close()

    # Entries.

    def snapshot(self, kind: Kind = "snapshot", who: Who = UNKNOWN, why: str = "") -> Mark:
        """Take everything written before this call; makes an entry only when something differs.

        Without `who` it is theirs who were at work since the last entry.
        """
        with self._lock:
            who, why = self._doing.author(why) if who == UNKNOWN else (self._doing.beside(who), why)
            return self._taken(kind, who, why)

    def _taken(self, kind: Kind, who: Who, why: str) -> Mark:
        found = self._snapshots.take(kind, who, why)
        self._doing.taken()
        return found

    def mark(self, phase: Literal["before", "after"], kind: Kind = "turn", who: Who = UNKNOWN, why: str = "") -> Mark:
        """Around a turn or a command: what was found before is theirs who were at work then, what is found after is `who`'s."""
        with self._lock:
            if phase == "before":
                found = self.snapshot("snapshot", UNKNOWN, f"found before a {kind}")
                self._doing.begin(who, why)
                return found
            found = self.snapshot(kind, who, why)
            self._doing.end(who, why)
            self._doing.taken()
            return found

    def note(self, phase: Literal["before", "during", "after"], who: Who, why: str = "") -> None:
        """Around a small act, such as a file that is saved: it is told apart from what others do at the same time.

        While nobody else works no entry is made for it alone; the next one is `who`'s and says why. Something that goes
        on is noted `during` it, as often as it likes.
        """
        with self._lock:
            at_work = self._doing.is_anybody_at_work()
            if phase == "before":
                if at_work:
                    self.snapshot("snapshot", UNKNOWN, "found before a command")
                return
            if at_work and phase == "after":
                self._taken("command", who, why)
            else:
                self._doing.note(who, why)

    def forget_doers(self, by: By) -> None:
        """None of these is at work: told by the process that lets them work, when it begins."""
        with self._lock:
            self._doing.forget(by)

    def set_good(self, entry: int | None = None, *, good: bool = True) -> Entry:
        """Note an entry (the newest, unless told) as known good, or no longer so: the latest such is never collected."""
        with self._lock:
            found = self._entries.get(entry if entry is not None else self._entries.newest())
            self._entries.set_good(found.id, good)
            return replace(found, good=good)

    def entry(self, entry: int) -> Entry:
        with self._reading:
            return EntryLog(self._reader_db).get(entry)

    def newest(self) -> int:
        with self._reading:
            return EntryLog(self._reader_db).newest()

    def log(self, path: str | None = None, *, limit: int = 50, before: int | None = None) -> list[Entry]:
        """Newest first; with a path only the entries that changed it or something below it."""
        with self._reading:
            log = EntryLog(self._reader_db)
            found = log.page(limit, before) if path is None else log.touching(self._place(path), limit, before)
        deadline = time.monotonic() + LINES_BUDGET
        return [
            entry if entry.lines_added is not None else self._with_lines(entry, deadline - time.monotonic())
            for entry in found
        ]

    def changes(self, entry: int) -> list[Change]:
        """What an entry changed, against the one before it (against nothing, for the oldest)."""
        with self._reading:
            log = EntryLog(self._reader_db)
            log.get(entry)
            return Places(self._reader_db).changes(log.before(entry) or 0, entry)

    def diff(
        self, entry: int, path: str | None = None, *, limit: int = 1000, seconds: float = DIFF_BUDGET
    ) -> tuple[list[FileDiff], int]:
        """What an entry changed, line by line: at most `limit` files and `seconds` of work, and how many files there are in all."""
        return self._diffs(self.changes(entry), path, limit, seconds)

    def compare(
        self, old: int, new: int, path: str | None = None, *, limit: int = 1000, seconds: float = DIFF_BUDGET
    ) -> tuple[list[FileDiff], int]:
        """What differs between the states of two entries, in either direction; 0 is the state before all of them."""
        with self._reading:
            for entry in (old, new):
                if entry:
                    EntryLog(self._reader_db).get(entry)
            changes = Places(self._reader_db).changes(old, new)
        return self._diffs(changes, path, limit, seconds)

    def last_good(self) -> int:
        """The newest entry noted as known good. `history.not-found` when there is none."""
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
        """The entry just before, of those still kept; 0 when there is none."""
        with self._reading:
            return EntryLog(self._reader_db).before(entry) or 0

    def _diffs(
        self, changes: Sequence[Change], path: str | None, limit: int, seconds: float
    ) -> tuple[list[FileDiff], int]:
        prefix = find_path(path, self.roots) if path is not None else ()
        changes = [change for change in changes if not change.only_folder_time]
        changes = [change for change in changes if tuple(change.path.split(b"/"))[: len(prefix)] == prefix]
        deadline = time.monotonic() + seconds
        found: list[FileDiff] = []
        for change in changes[:limit]:
            if time.monotonic() > deadline:
                break
            found.append(diff_change(change, self.read))
        return found, len(changes)

    def _with_lines(self, entry: Entry, seconds: float) -> Entry:
        """Lines are counted when first asked for, or by the housekeeping, and kept; not for more paths than anybody reads."""
        if entry.added + entry.changed + entry.removed > MAX_COUNTED:
            return entry
        diffs, total = self.diff(entry.id, limit=MAX_COUNTED, seconds=seconds)
        if len(diffs) < total:
            return entry
        added, removed = sum(each.added or 0 for each in diffs), sum(each.removed or 0 for each in diffs)
        if self._lock.acquire(blocking=False):
            try:
                with suppress(sqlite3.OperationalError):  # counted again when there is room
                    self._entries.set_lines(entry.id, added, removed)
            finally:
                self._lock.release()
        return replace(entry, lines_added=added, lines_removed=removed)

    def version(self, entry: int, path: str) -> Version | None:
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
                f"{path} was never there in any entry that is kept",
                hint="freehold log lists the entries",
            )
        return place

    # Going back and forth.

    def plan_undo(self, entry: int | None = None) -> Plan:
        """What `undo` would do. Changes in no entry yet are taken into one first, so that the plan is exact."""
        with self._lock:
            self._before("undo")
            return self._undoing.plan("undo", self._undoing.undo_target(entry)[1])

    def undo(self, entry: int | None = None, who: Who = UNKNOWN) -> Outcome:
        """Back to before the last entry that is not undone yet, or to before `entry`."""
        return self._put_back("undo", lambda: self._undoing.undo(entry, who))

    def plan_redo(self) -> Plan:
        with self._lock:
            self._before("redo")
            return self._undoing.plan("redo", self._undoing.redo_target()[0])

    def redo(self, who: Who = UNKNOWN) -> Outcome:
        return self._put_back("redo", lambda: self._undoing.redo(who))

    def plan_restore(self, entry: int, paths: Sequence[str] = ()) -> Plan:
        with self._lock:
            self._before("restore")
            return self._undoing.plan("restore", entry, [find_path(path, self.roots) for path in paths])

    def restore(self, entry: int, paths: Sequence[str] = (), who: Who = UNKNOWN) -> Outcome:
        """Everything, or only these paths, as they were in `entry`."""
        return self._put_back(
            "restore", lambda: self._undoing.restore(entry, [find_path(path, self.roots) for path in paths], who)
        )

    def plan_revert(
        self,
        entry: int,
        choose: Mapping[str, Choice] | None = None,
        since: int | None = None,
        of: Turn | None = None,
    ) -> Plan:
        with self._lock:
            self._before("revert")
            return self._undoing.plan_revert(entry, self._choices(choose), since, of)[0]

    def revert(
        self,
        entry: int,
        choose: Mapping[str, Choice] | None = None,
        who: Who = UNKNOWN,
        since: int | None = None,
        of: Turn | None = None,
    ) -> Outcome:
        """Take back only what `entry` changed, or all that changed after `since` up to it (only `of` one turn). `history.conflicts` is raised, and nothing written, while a conflict has no choice.

        `choose` maps a path to "old" (as before the entry) or "mine" (as it is now); the key "" stands for every path.
        """
        return self._put_back("revert", lambda: self._undoing.revert(entry, self._choices(choose), who, since, of))

    def _choices(self, choose: Mapping[str, Choice] | None) -> dict[tuple[bytes, ...], Choice]:
        return {find_path(path, self.roots) if path else (): choice for path, choice in (choose or {}).items()}

    def _before(self, verb: str) -> None:
        self.snapshot("snapshot", UNKNOWN, f"found before {verb}")

    def _put_back(self, verb: str, action: Callable[[], Outcome]) -> Outcome:
        with self._lock:
            self._before(verb)
            self._restoring = True
            try:
                outcome = action()
            finally:
                self._restoring = False
            self._settle("history.interrupted")  # an interrupted one is superseded: its state is an entry now
            if self._housekeeping is None:
                self._staging.empty()
            return outcome

    # Staying bounded, staying whole.

    def _room(self) -> int:
        """Bytes one snapshot may still add: a quarter above the quota, since dropping the old waits until the owner is told."""
        quota = self.settings.quota_for(self.folder)
        return max(0, quota + quota // 4 - self._collector.used())

    def size(self) -> Size:
        return self._collector.size(self.settings.quota_for(self.folder))

    def collect(self, *, now: float | None = None) -> Collected:
        """Thin and sweep. Entries are dropped for the quota only after the owner was told, and given the grace to act."""
        quota = self.settings.quota_for(self.folder)
        told = {notice.code: notice.at for notice in self.notices()}

        def tell(used: int) -> None:
            self._notice(
                QUOTA_CODE,
                f"History uses {used:,} bytes of its {quota:,}: the oldest entries will be dropped",
                "Raise history.quota in freehold.toml to keep them",
            )

        grace = self.settings.quota_grace
        found = collect(
            self._collector,
            quota,
            now=time.time() if now is None else now,
            aged=self._aged(told) if now is None else now,
            told_at=told.get(QUOTA_CODE),
            grace=grace,
            tell=tell,
        )
        if found.used <= quota and QUOTA_CODE in told:
            self._settle(QUOTA_CODE)
        if found.used > quota * 0.8 and not found.waiting:
            if NEARLY_CODE not in told:
                self._notice(
                    NEARLY_CODE,
                    f"History uses {found.used:,} bytes, more than 80 % of its quota",
                    "Raise history.quota in freehold.toml",
                )
        elif NEARLY_CODE in told:
            self._settle(NEARLY_CODE)
        return found

    def _aged(self, told: Mapping[str, float]) -> float:
        with self._lock:
            aged = self._aging.advance()
        if self._aging.behind > DAY:
            if CLOCK_CODE not in told:
                self._notice(
                    CLOCK_CODE,
                    f"The clock is {self._aging.behind / DAY:.0f} days ahead of what has passed since history was last collected; old entries are thinned only as time passes",
                    "Nothing to do if the machine was off that long; else set its clock",
                )
        elif CLOCK_CODE in told:
            self._settle(CLOCK_CODE)
        return aged

    def verify(self) -> Verified:
        """Read everything again. Runs on a connection of its own: nothing waits for it."""
        db = open_reader(self.folder / "history.db")
        try:
            return verify(db, self._chunks)
        finally:
            db.close()

    # The chores of the housekeeping.

    def quiet_snapshot(self, why: str) -> None:
        self.snapshot("quiet", UNKNOWN, why)

    def empty_staging(self) -> None:
        self._staging.empty()

    def collect_unasked(self) -> None:
        self.collect()

    def count_lines(self) -> None:
        with self._reading:
            entries = EntryLog(self._reader_db).page(20, None)
        for entry in reversed(entries):
            if entry.id > self._counted:
                self._with_lines(entry, DIFF_BUDGET)
                self._counted = entry.id

    # After a crash.

    def interrupted(self) -> Interrupted | None:
        """The restore that was under way when the process last ended, if any."""
        if self._restoring:
            return None
        with self._reading:
            found = EntryLog(self._reader_db).interrupted()
            return found[0] if found else None

    def recover(self, *, finish: bool, who: Who = UNKNOWN) -> Outcome:
        with self._lock:
            outcome = self._undoing.recover(finish=finish, who=who)
            self._settle("history.interrupted")
            return outcome

    def notices(self) -> list[Notice]:
        with self._reading:
            return EntryLog(self._reader_db).notices()

    def _say_what_happened(self, half: int) -> None:
        if half:
            self._notice(
                "history.half-taken",
                "A snapshot was under way when the keeper last ended; it was dropped, the state before it is intact",
                "",
            )
        found = self._entries.interrupted()
        if found is not None:
            intent = found[0]
            self._notice(
                "history.interrupted",
                f"A {intent.kind} to the state of entry {intent.target} was under way when the keeper last ended; entry {intent.before} holds the state before it",
                "freehold history recover --finish goes on with it, --back returns to the state before",
            )

    def _notice(self, code: str, message: str, hint: str) -> None:
        notice = Notice(code, message, hint, time.time())
        # A full disk must not keep the owner from being told.
        with self._lock, suppress(sqlite3.OperationalError), transaction(self._db):
            self._entries.tell(notice)
        self._tell(notice)

    def _settle(self, code: str) -> None:
        with self._lock, suppress(sqlite3.OperationalError), transaction(self._db):
            self._entries.untell(code)
