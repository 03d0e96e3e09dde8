"""Records snapshots for the owner, agents and maintenance: finds the author, limits its rate, and tells what was not stored."""

import threading
from typing import Literal

from freehold.errors import FreeholdError
from freehold.history.attribution import Attribution
from freehold.history.entries import EntryWriter
from freehold.history.journal_space import JournalSpace, refuse_restore
from freehold.history.memory_pause import postpone_collection
from freehold.history.model import FLAG_OVER_RATE, UNKNOWN, Author, AuthorKind, EntryKind, SnapshotResult
from freehold.history.notices import Notices
from freehold.history.rate import AuthorRates
from freehold.history.retention import Retention
from freehold.history.snapshot import NO_LIMIT, STORE_ERRORS, SnapshotWriter

RATE_CODE = "history.rate-exceeded"
UNSTORED_CODE = "history.not-stored"

MarkPhase = Literal["before", "after"]
NotePhase = Literal["before", "during", "after"]


class SnapshotRecorder:
    """Thread-safe: each call holds the lock of history."""

    def __init__(
        self,
        lock: threading.RLock,
        entries: EntryWriter,
        snapshots: SnapshotWriter,
        rates: AuthorRates,
        retention: Retention,
        notices: Notices,
    ) -> None:
        self._lock = lock
        self._entries = entries
        self._snapshots = snapshots
        self._rates = rates
        self._retention = retention
        self._notices = notices
        self._attribution = Attribution()

    def snapshot(self, kind: EntryKind, who: Author, why: str) -> SnapshotResult:
        with self._lock:
            self._record_interrupted()
            who, why = (
                self._attribution.find_author(why) if who == UNKNOWN else (self._attribution.add_concurrent(who), why)
            )
            return self._record(kind, who, why)

    def mark(self, phase: MarkPhase, kind: EntryKind, who: Author, why: str) -> SnapshotResult:
        with self._lock:
            if phase == "before":
                found = self.snapshot("snapshot", UNKNOWN, f"found before a {kind}")
                self._attribution.begin_activity(who, why)
                return found
            found = self.snapshot(kind, who, why)
            self._attribution.end_activity(who, why)
            self._attribution.reset()
            return found

    def note(self, phase: NotePhase, who: Author, why: str) -> None:
        with self._lock:
            is_active = self._attribution.is_anyone_active()
            if phase == "before":
                if is_active:
                    self.snapshot("snapshot", UNKNOWN, "found before a command")
                return
            if is_active and phase == "after":
                self._record("command", who, why)
            else:
                self._attribution.note_activity(who, why)

    def forget_activities(self, by: AuthorKind) -> None:
        with self._lock:
            self._attribution.forget_activities(by)

    def take_quiet_snapshot(self, why: str) -> None:
        """Not while an author is over its rate: what was recorded before it is enough to undo its work."""
        with self._lock:
            if not self._rates.is_exceeded(self._attribution.find_author("")[0]):
                self._notices.remove(RATE_CODE)
                self.snapshot("quiet", UNKNOWN, why)

    def retry_unstored(self) -> None:
        """Try again to store what could not be stored before."""
        with self._lock:
            if self._snapshots.has_unstored():
                self.snapshot("quiet", UNKNOWN, "")
            else:
                self._notices.remove(UNSTORED_CODE)

    def record_present(self, verb: str, space: JournalSpace) -> None:
        """Before a restore. On a full disk the reserve is used for it. When that is not enough, nothing is changed."""
        why = f"found before {verb}"
        try:
            self.snapshot("snapshot", UNKNOWN, why)
        except FreeholdError as error:
            if error.code not in STORE_ERRORS:
                raise
            space.free_space()
            try:
                self.snapshot("snapshot", UNKNOWN, why)
            except FreeholdError as again:
                raise refuse_restore(again) if again.code in STORE_ERRORS else again from error

    def _record(self, kind: EntryKind, who: Author, why: str) -> SnapshotResult:
        rate = self._rates.measure_room(who) if self._entries.newest() else NO_LIMIT
        with postpone_collection():
            found = self._snapshots.record_snapshot(kind, who, why, rate=rate)
        self._attribution.reset()
        if rate != NO_LIMIT:
            self._rates.add(who, self._snapshots.added_bytes)
        self._tell(who)
        return found

    def _tell(self, who: Author) -> None:
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
