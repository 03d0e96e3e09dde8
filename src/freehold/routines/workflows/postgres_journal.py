"""The journal of workflows in a PostgreSQL database of the owner.

The timeline is a file of its own, so a state and its event cannot be one transaction of one database. The event is
stored beside the state, in the same transaction, and brought into the timeline afterwards. The timeline stores how far
it has been told in the same transaction as the events: each is told once, in order, whatever is killed when.
"""

import asyncio
import json
import logging
import os
import secrets
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from freehold.errors import FreeholdError
from freehold.routines.workflows.journal import UNAVAILABLE, Journal, JournalTransaction
from freehold.routines.workflows.loop_thread import LoopThread
from freehold.routines.workflows.schema import POSTGRES_SCHEMA, SCHEMA
from freehold.slots.postgres_connections import PostgresConnections
from freehold.slots.settings import ExternalSettings, FindSecret
from freehold.timeline import Json, Timeline
from freehold.timeline.event import check_kind, check_who, encode_data

if TYPE_CHECKING:
    import psycopg

SETTINGS = "workflows.postgres"
TABLES = "workflows"
DEFAULT_SCHEMA = "freehold_workflows"
THREADS = 4
PAGE = 200
NO_DATA: Mapping[str, Json] = {}

P = ParamSpec("P")
T = TypeVar("T")
log = logging.getLogger("freehold.workflows")


def journal_away(reason: str) -> FreeholdError:
    """Whether a change that was under way is stored is not known: it is looked up, or done again, when it is back."""
    return FreeholdError(
        UNAVAILABLE,
        f"The workflows are in PostgreSQL, which cannot be reached: {reason}",
        hint="They go on by themselves when it is back. Its address is in [workflows.postgres] of freehold.toml",
        kind="unavailable",
    )


class PostgresJournal(Journal):
    """One schema belongs to one Freehold. Its connections live in an event loop of their own, with bounds on each call."""

    def __init__(
        self, timeline: Timeline, values: Mapping[str, str], find_secret: FindSecret, environ: Mapping[str, str]
    ) -> None:
        super().__init__(timeline)
        self._settings = ExternalSettings(TABLES, values, environ, find_secret, where=SETTINGS)
        self._threads = ThreadPoolExecutor(THREADS, "workflows")
        """Not those of the sessions: a database that hangs delays nobody else."""
        self._opening = threading.Lock()
        self._relaying = threading.Lock()
        self._loop: LoopThread | None = None
        self._connections: PostgresConnections | None = None
        self._name: str | None = None

    # What a journal does

    def prepare(self) -> None:
        self.timeline.ensure_schema("workflows", *SCHEMA)
        self._call(self._open().migrate(TABLES, POSTGRES_SCHEMA))
        self._name = self._claim()
        self.relay()

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        self._require_name()
        return self._read(sql, parameters)

    def _read(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with self._connection() as connection:
            return PostgresTransaction(self, connection).execute(sql, parameters).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[JournalTransaction]:
        with self.commit() as transaction:
            yield transaction
        if transaction.has_events:
            try:
                self.relay()
            except FreeholdError as error:  # it is stored, and told later
                log.warning("events of workflows are told later: %s", error)

    @contextmanager
    def commit(self) -> "Iterator[PostgresTransaction]":
        """One transaction of the database. Its events are not told yet."""
        told = self._read_told(self._require_name())
        with self._connection() as connection:
            transaction = PostgresTransaction(self, connection)
            transaction.execute("BEGIN")
            try:
                # One writer at a time, as in the file of the timeline: events are numbered in the order of their commits.
                transaction.execute("LOCK TABLE workflows_workflow IN EXCLUSIVE MODE")
                transaction.execute("DELETE FROM workflows_event WHERE number <= ?", (told,))
                yield transaction
                transaction.execute("COMMIT")
            except BaseException:
                with suppress(Exception):  # the connection may be gone, and then nothing is left to be taken back
                    transaction.execute("ROLLBACK")
                raise

    def relay(self) -> None:
        name = self._require_name()
        with self._relaying:
            while True:
                rows = self._read(
                    "SELECT number, kind, who, data FROM workflows_event WHERE number > ? ORDER BY number LIMIT ?",
                    (self._read_told(name), PAGE),
                )
                if not rows:
                    return
                self._tell(name, rows)

    def close(self) -> None:
        self._threads.shutdown()
        with self._opening:
            loop, self._loop = self._loop, None
            connections, self._connections = self._connections, None
        if loop is not None:
            if connections is not None:
                loop.call(connections.close())
            loop.close()

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, partial(function, *args, **kwargs))

    # Telling the timeline

    def _tell(self, name: str, rows: list[tuple[Any, ...]]) -> None:
        with self.timeline.transaction() as tx:
            ((told,),) = tx.execute("SELECT told FROM workflows_told WHERE journal = ?", (name,)).fetchall()
            for number, kind, who, data in rows:
                if number > told:
                    tx.append(kind, json.loads(data), who=who)
            tx.execute("UPDATE workflows_told SET told = max(told, ?) WHERE journal = ?", (rows[-1][0], name))

    def _read_told(self, name: str) -> int:
        rows = self.timeline.query("SELECT told FROM workflows_told WHERE journal = ?", (name,))
        return int(rows[0][0]) if rows else 0

    def _claim(self) -> str:
        """The name of this journal, which our timeline knows. Raises `workflows.other-freehold`."""
        rows = self._read("SELECT name FROM workflows_journal")
        if not rows:
            mine = secrets.token_hex(16)
            with self.timeline.transaction() as tx:
                tx.execute("INSERT INTO workflows_told (journal, told) VALUES (?, 0)", (mine,))
            self._read(
                "INSERT INTO workflows_journal (name) SELECT ? WHERE NOT EXISTS (SELECT 1 FROM workflows_journal)",
                (mine,),
            )
            rows = self._read("SELECT name FROM workflows_journal")
        name = str(rows[0][0])
        if not self.timeline.query("SELECT 1 FROM workflows_told WHERE journal = ?", (name,)):
            raise FreeholdError(
                "workflows.other-freehold",
                f"The schema {self._open().schema} has the workflows of another Freehold",
                hint='Choose another one: schema = "NAME" in [workflows.postgres]',
                kind="conflict",
            )
        return name

    def _require_name(self) -> str:
        if self._name is None:
            self.prepare()
        assert self._name is not None
        return self._name

    # Connections

    def _open(self) -> PostgresConnections:
        with self._opening:
            if self._loop is None:
                self._loop = LoopThread("workflows-postgres")
            if self._connections is None:
                self._connections = PostgresConnections(self._settings, journal_away, schema=DEFAULT_SCHEMA)
            return self._connections

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        assert self._loop is not None
        return self._loop.call(work)

    @contextmanager
    def _connection(self) -> "Iterator[psycopg.AsyncConnection[Any]]":
        connections = self._open()
        import psycopg

        manager = connections.connection()
        try:
            connection = self._call(manager.__aenter__())
            try:
                yield connection
            except BaseException as error:
                self._call(manager.__aexit__(type(error), error, error.__traceback__))
                raise
            self._call(manager.__aexit__(None, None, None))
        except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected) as error:
            raise journal_away("too many changes at the same time") from error
        except FreeholdError as error:
            cause = error.__cause__
            if isinstance(cause, psycopg.DataError | psycopg.IntegrityError | psycopg.errors.SyntaxError):
                raise cause from None  # an error of ours, which waiting does not mend
            raise

    def execute(self, connection: "psycopg.AsyncConnection[Any]", sql: str, parameters: Sequence[Any]) -> "Answer":
        connections = self._open()
        return self._call(connections.bound(connection, _execute(connection, sql, parameters)))


class Answer:
    """The rows of a statement, and how many it has changed."""

    def __init__(self, rows: list[tuple[Any, ...]], rowcount: int) -> None:
        self._rows = rows
        self.rowcount = rowcount

    def fetchone(self) -> Any:
        return self._rows[0] if self._rows else None

    def fetchall(self) -> list[Any]:
        return self._rows


class PostgresTransaction:
    def __init__(self, journal: PostgresJournal, connection: "psycopg.AsyncConnection[Any]") -> None:
        self._journal = journal
        self._connection = connection
        self.has_events = False

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Answer:
        return self._journal.execute(self._connection, sql.replace("?", "%s"), [_clean(one) for one in parameters])

    def append(self, kind: str, data: Mapping[str, Json] = NO_DATA, *, who: str = "freehold") -> object:
        check_kind(kind)
        check_who(who)
        text = encode_data(kind, data)
        self.execute("INSERT INTO workflows_event (kind, who, data) VALUES (?, ?, ?)", (kind, who, text))
        self.has_events = True
        return None


async def _execute(connection: "psycopg.AsyncConnection[Any]", sql: str, parameters: Sequence[Any]) -> Answer:
    cursor = await connection.execute(sql.encode(), parameters or None)
    return Answer(await cursor.fetchall() if cursor.description is not None else [], cursor.rowcount)


def _clean(value: Any) -> Any:
    """Text that PostgreSQL can store: it knows no NUL."""
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value


_OPEN: "weakref.WeakValueDictionary[int, PostgresJournal]" = weakref.WeakValueDictionary()


def open_postgres_journal(timeline: Timeline, values: Mapping[str, str], find_secret: FindSecret) -> PostgresJournal:
    """One for each timeline of this process: its parts share the connections."""
    found = _OPEN.get(id(timeline))
    if found is None:
        found = _OPEN[id(timeline)] = PostgresJournal(timeline, values, find_secret, os.environ)
    return found
