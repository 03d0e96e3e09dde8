"""Append, read and follow events. Safe for several threads and several processes."""

import json
import sqlite3
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any

from freehold.errors import FreeholdError
from freehold.timeline import database
from freehold.timeline.anchor import AnchoredHead, HeadAnchor
from freehold.timeline.archive import archive_folder, find_archived_end
from freehold.timeline.errors import explain_sqlite_error
from freehold.timeline.event import Json, TimelineEvent, check_kind, check_who, digest, encode_data
from freehold.timeline.event_selection import MAX_SEQ, EventSelection, select_events
from freehold.timeline.verification import ChainProblem, verify_chain

Parameters = Sequence[Any] | Mapping[str, Any]
NO_DATA: Mapping[str, Json] = {}
_INCREMENTAL = 2
"""SQLite's number for `auto_vacuum = INCREMENTAL`."""
_PROGRESS_STEPS = 20
"""Steps of SQLite between two looks at the clock. To find the next match in the index of a search is one step."""


@dataclass(frozen=True)
class TimelineSize:
    """`events` were written, `archived` of them are in the archive. Sizes in bytes."""

    events: int
    archived: int
    database_bytes: int
    archive_bytes: int
    archive_files: int


def _now() -> datetime:
    return datetime.now(UTC)


def format_instant(moment: datetime) -> str:
    """A time as the timeline writes it: UTC with milliseconds. All have the same length, so that they sort as text."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Transaction:
    """One write transaction: all of it is stored, or nothing."""

    def __init__(self, connection: sqlite3.Connection, clock: Callable[[], datetime]) -> None:
        self._connection = connection
        self._clock = clock
        self._last: tuple[int, str] | None = None

    def execute(self, sql: str, parameters: Parameters = ()) -> sqlite3.Cursor:
        return self._connection.execute(sql, parameters)

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """A part of the transaction that can fail alone: an exception takes back what was done in it, and goes on."""
        last = self._last
        self._connection.execute("SAVEPOINT part")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK TO part")
            self._connection.execute("RELEASE part")
            self._last = last
            raise
        self._connection.execute("RELEASE part")

    def append(self, kind: str, data: Mapping[str, Json] = NO_DATA, *, who: str = "freehold") -> TimelineEvent:
        """Adds an event. Others see it when the transaction has ended without an error."""
        check_kind(kind)
        check_who(who)
        text = encode_data(kind, data)
        # What this transaction has added last is the head: nobody else can write now.
        last, previous = self._last or self._connection.execute("SELECT seq, hash FROM head").fetchone()
        seq, at = last + 1, format_instant(self._clock())
        chained = digest(previous, seq, at, kind, who, text)
        self._connection.execute(
            "INSERT INTO event (seq, at, kind, who, data, previous, hash) VALUES (?, ?, ?, ?, ?, ?, ?)",
            (seq, at, kind, who, text, previous, chained),
        )
        self._connection.execute("UPDATE head SET seq = ?, hash = ?", (seq, chained))
        self._last = (seq, chained)
        return TimelineEvent(seq, at, kind, who, json.loads(text), chained, previous)


class Timeline:
    """Everything that happened, in order, in one file.

    All calls except `follow` block: in a coroutine use `asyncio.to_thread`. After `append` or `transaction` has
    returned, the event is on disk. With `readonly` the file must exist, and it is never written.
    """

    def __init__(self, path: Path | str, *, readonly: bool = False, clock: Callable[[], datetime] = _now) -> None:
        self.path = Path(path)
        self._clock = clock
        self._writing = threading.Lock()
        self._reading = threading.Lock()
        self._holder: int | None = None
        self._anchor = HeadAnchor(self.path)
        with self._explained():
            self._writer = None if readonly else database.open_writer(self.path)
            try:
                self._reader = database.open_reader(self.path)
            except BaseException:
                if self._writer is not None:
                    self._writer.close()
                raise

    def append(self, kind: str, data: Mapping[str, Json] = NO_DATA, *, who: str = "freehold") -> TimelineEvent:
        with self.transaction() as tx:
            return tx.append(kind, data, who=who)

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Writes an event and the state that it changes together. Keep it short: no other process can write meanwhile.

        A broken constraint raises `sqlite3.IntegrityError`. Any exception rolls everything back.
        """
        if self._writer is None:
            raise FreeholdError(
                "timeline.read-only",
                f"{self.path} was opened for reading only",
                hint="Open it without readonly to write to it",
            )
        if self._holder == threading.get_ident():
            raise RuntimeError("already in a transaction of this timeline: use the Transaction it gave")
        with self._writing, self._explained():
            self._holder = threading.get_ident()
            try:
                database.begin_write(self._writer)
                transaction = Transaction(self._writer, self._clock)
                yield transaction
                self._writer.execute("COMMIT")
                if transaction._last is not None:
                    self._anchor.advance(self._writer, *transaction._last)
            except BaseException:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")
                raise
            finally:
                self._holder = None

    def ensure_schema(self, room: str, *steps: str) -> None:
        """Creates or migrates the tables of a room in this file. Each step runs once for a file, in order.

        A step is one or more SQL statements. To change tables later, add a step; never edit a released one. Table names
        start with the name of the room. Idempotent; safe when several processes start at the same time.
        """
        with self.transaction() as tx:
            database.migrate_tables(tx._connection, room, steps, self.path)

    def query(self, sql: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        """Reads committed rows of a room's tables."""
        with self._reading, self._explained():
            return self._reader.execute(sql, parameters).fetchall()

    def query_within(self, seconds: float, sql: str, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        """As `query`, for what may take long: it has its own connection, so no other reader waits for it.

        Raises `TimeoutError`.
        """
        deadline = time.monotonic() + seconds
        with self._explained(), closing(database.open_reader(self.path)) as reader:
            reader.set_progress_handler(lambda: time.monotonic() > deadline, _PROGRESS_STEPS)
            try:
                return reader.execute(sql, parameters).fetchall()
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                    raise
                raise TimeoutError(f"Reading {self.path} took more than {seconds:g} s") from error

    def read(
        self,
        after: int = 0,
        until: int | None = None,
        kinds: Sequence[str] = (),
        since: datetime | None = None,
        limit: int = 1000,
    ) -> list[TimelineEvent]:
        """Events with `after < seq <= until`, oldest first, at most `limit`.

        `kinds` holds exact kinds or patterns such as `egress.*`; `since` is compared with the times that the clock gave.
        """
        wanted = EventSelection(
            limit,
            after=after,
            until=MAX_SEQ if until is None else until,
            kinds=kinds,
            since="" if since is None else format_instant(since),
        )
        return self._select(wanted)

    def tail(
        self, count: int, kinds: Sequence[str] = (), since: datetime | None = None, before: int | None = None
    ) -> list[TimelineEvent]:
        """The last `count` events of these kinds with `seq < before`, oldest first."""
        wanted = EventSelection(
            count,
            until=MAX_SEQ if before is None else before - 1,
            kinds=kinds,
            since="" if since is None else format_instant(since),
            newest_first=True,
        )
        return self._select(wanted)[::-1]

    def last(self) -> TimelineEvent | None:
        found = self.tail(1)
        return found[0] if found else None

    def follow(self, after: int | None = None, kinds: Sequence[str] = ()) -> AsyncGenerator[TimelineEvent, None]:
        """Events after `after` (default: from now on), and then new ones of all processes as they are written.

        It ends only when it is closed: use `contextlib.aclosing`. Each follower has its own connection.
        """
        from freehold.timeline.follower import follow_events

        return follow_events(self.path, after, kinds)

    def verify(
        self, progress: Callable[[int, int], None] | None = None, known: tuple[int, str] | None = None
    ) -> list[ChainProblem]:
        """Every changed, missing or reordered event; an empty list when there is no problem.

        The end is compared with the anchor in the vault, so that a tail that was cut off is missed.
        `progress` is called with the number of checked events and of all events. `known` is a sequence number and its
        hash from another place: with it, a chain that was rewritten completely is found as well.
        """
        return verify_chain(self.path, progress, known, self._anchor)

    def read_anchor(self) -> AnchoredHead | None:
        """The last event that is anchored in the vault. Raises InvalidAnchor."""
        return self._anchor.read()

    def measure(self) -> TimelineSize:
        """How many events there are and where, and the space that they take."""
        with self._reading, self._explained():
            self._reader.execute("BEGIN")
            try:
                archived = find_archived_end(self._reader)
                ((head,),) = self._reader.execute("SELECT seq FROM head").fetchall()
            finally:
                self._reader.execute("COMMIT")
        files = list(archive_folder(self.path).glob("*.jsonl.gz"))
        return TimelineSize(
            int(head), archived, self.path.stat().st_size, sum(file.stat().st_size for file in files), len(files)
        )

    def shrink(self, pages: int, spare: int) -> bool:
        """Gives up to `pages` free pages back to the file system, and returns whether more than `spare` are left.

        A file from before the archive keeps its size: its free pages are used again.
        """
        with self.transaction() as tx:
            ((mode,),) = tx.execute("PRAGMA auto_vacuum").fetchall()
            ((free,),) = tx.execute("PRAGMA freelist_count").fetchall()
            if mode != _INCREMENTAL or free <= spare:
                return False
            for _ in range(min(pages, free - spare)):
                tx.execute("PRAGMA incremental_vacuum(1)")  # Python runs it for one page only, whatever the number
            return bool(free - pages > spare)

    def close(self) -> None:
        """Waits for a running transaction. Idempotent."""
        with self._writing, self._reading:
            self._reader.close()
            if self._writer is not None:
                self._writer.close()
            self._anchor.close()

    def __enter__(self) -> "Timeline":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _select(self, wanted: EventSelection) -> list[TimelineEvent]:
        with self._reading, self._explained():
            self._reader.execute("BEGIN")
            try:
                return select_events(self._reader, self.path, wanted)
            finally:
                self._reader.execute("COMMIT")

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.IntegrityError:
            raise
        except sqlite3.Error as error:
            explained = explain_sqlite_error(error, self.path)
            if explained is None:
                raise
            raise explained from error
