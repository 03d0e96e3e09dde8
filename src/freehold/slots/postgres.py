"""A slot that is kept in a PostgreSQL database: connections, tables, and how a call becomes one transaction."""

import asyncio
import os
import re
import socket
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast
from urllib.parse import parse_qsl, unquote, urlsplit
from weakref import WeakKeyDictionary

from freehold.slots.answers import answer_once
from freehold.slots.contract import CallContext, Reply, SlotCall, SlotCaller, SlotContract, SlotUpkeep, SlotWrite
from freehold.slots.errors import SlotError, slot_unavailable
from freehold.slots.settings import ExternalSettings
from freehold.slots.socket_relay import SocketRelay
from freehold.slots.statement import Row, Steps
from freehold.slots.timeline_tables import StepsOfCall

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")
MAX_CONNECTIONS = 4
DEFAULT_PORT = 5432
CONNECT_TIMEOUT = 8
CALL_TIMEOUT = 5.0
"""Seconds after which a call is given up and its connection is cut."""
MAX_ANSWER = 64 * 1024 * 1024
"""Bytes of all answers to one call. Beyond it the connection is cut."""
LOOK_INTERVAL = 0.05
"""Seconds between two looks at how much has come."""
MAX_TRIES = 3
"""How often a transaction is tried that the server ended because of another one."""
_RECEIVED_AT = 128
"""Where `tcpi_bytes_received` stands in the kernel's `tcp_info`."""
_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}", re.ASCII)
_OPTIONS_OF = {"vector": " -c hnsw.iterative_scan=strict_order -c hnsw.ef_search=100"}
"""With a condition beside the vectors, the index goes on until enough rows meet it."""
_SETTINGS = ("url", "password", "schema", "sslmode", "sslrootcert")


def read_connection(settings: ExternalSettings, more: Sequence[str] = ()) -> dict[str, str | int]:
    """The parameters of a connection. Beyond this machine it is encrypted, and the server must prove its name.

    `more`: settings that are not about the connection.
    """
    settings.require_known(*_SETTINGS, *more)
    url = settings.require("url")
    parts = urlsplit(url)
    if parts.scheme not in ("postgresql", "postgres") or parts.password is not None:
        raise settings.wrong(
            f"slots.{settings.slot}.settings.url is not an address of a PostgreSQL database",
            'url = "postgresql://user@db.example.com/freehold", with password = "secret:NAME" beside it',
        )
    given = dict(parse_qsl(parts.query))
    host = unquote(parts.hostname or "") or given.pop("host", "")
    if given:
        raise settings.wrong(
            f"slots.{settings.slot}.settings.url has parameters that are not known: {', '.join(sorted(given))}",
            "Only host (the folder of a Unix socket) can stand there",
        )
    found: dict[str, str | int] = {
        "host": host or "localhost",
        "dbname": unquote(parts.path.lstrip("/")) or "postgres",
        "connect_timeout": CONNECT_TIMEOUT,
        "application_name": "freehold",
        "keepalives_idle": 30,
        "tcp_user_timeout": 10_000,
    }
    if parts.port is not None:
        found["port"] = parts.port
    if parts.username:
        found["user"] = unquote(parts.username)
    password = settings.secret("password")
    if password is not None:
        found["password"] = password.reveal()
    is_here = host.startswith("/") or host in ("", "localhost", "127.0.0.1", "::1")
    found["sslmode"] = settings.find("sslmode") or ("prefer" if is_here else "verify-full")
    if found["sslmode"] == "verify-full":
        found["sslrootcert"] = settings.find("sslrootcert") or "system"
    return found


class PostgresTables:
    """Carries out the calls of one contract in one schema of a database."""

    kind = "postgres"
    records_events = False

    def __init__(
        self,
        contract: SlotContract,
        settings: ExternalSettings,
        schema: Sequence[str],
        steps_of_call: StepsOfCall,
        clock: Callable[[], float] = time.time,
        *,
        extension: Literal["vector"] | None = None,
        more_settings: Sequence[str] = (),
    ) -> None:
        self._contract = contract
        self._settings = settings
        self._extension = extension
        self._more_settings = more_settings
        self._migrations = schema
        self._steps_of_call = steps_of_call
        self._clock = clock
        self._idle: deque[psycopg.AsyncConnection[Row]] = deque()
        self._relays: WeakKeyDictionary[psycopg.AsyncConnection[Row], SocketRelay] = WeakKeyDictionary()
        """For connections over a Unix socket, whose bytes nobody else counts."""
        self._free = asyncio.Semaphore(MAX_CONNECTIONS)
        self._name = settings.find("schema") or "freehold"
        if _NAME.fullmatch(self._name) is None:
            raise settings.wrong(
                f"slots.{settings.slot}.settings.schema is not a plain name", "Use lower-case letters and digits"
            )

    async def connect(self) -> None:
        async with self._connection() as connection:
            await self._deadline(connection, self._migrate(connection))

    async def health(self) -> None:
        asked = f"SELECT at FROM {self._contract.name}_answer LIMIT 1"  # noqa: S608 - the name of a slot
        async with self._connection() as connection:
            await self._deadline(connection, _execute(connection, asked))

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().close()

    async def define(self, sql: str) -> None:
        """Carries out a definition, such as of an index, that is there already or costs little."""
        async with self._connection() as connection:
            await self._deadline(connection, _execute(connection, sql))

    async def drop_schema(self) -> None:
        """Removes everything that this slot has stored. Only for a schema that was made for a trial."""
        async with self._connection() as connection:
            await self._deadline(connection, _execute(connection, f"DROP SCHEMA IF EXISTS {self._name} CASCADE"))

    async def call(self, request: SlotCall[Reply], caller: SlotCaller) -> Reply:
        from psycopg import errors

        for tries_left in reversed(range(MAX_TRIES)):
            try:
                async with self._connection() as connection:
                    reply = await self._deadline(connection, self._carry_out(connection, request, caller))
                    return cast("Reply", reply)
            except (errors.SerializationFailure, errors.DeadlockDetected) as error:
                if not tries_left:
                    raise slot_unavailable(self._contract.name, "too many changes at the same time") from error
        raise AssertionError("the last try returns or raises")

    async def _carry_out(
        self, connection: "psycopg.AsyncConnection[Row]", request: SlotCall[Any], caller: SlotCaller
    ) -> Any:
        context = CallContext(caller, round(self._clock(), 6))
        steps = self._steps_of_call[type(request)](request, context)
        if not isinstance(request, SlotWrite | SlotUpkeep):
            return await _run_steps(connection, steps)
        async with connection.transaction():
            if isinstance(request, SlotUpkeep):
                return await _run_steps(connection, steps)
            once = answer_once(self._contract.name, request, caller, steps, context.now)
            reply, _repeated = await _run_steps(connection, once)
            return reply

    async def _migrate(self, connection: "psycopg.AsyncConnection[Row]") -> None:
        """Makes the tables, or brings them to this version. Safe when two Freeholds connect at once."""
        async with connection.transaction():
            await _execute(connection, "SELECT pg_advisory_xact_lock(7305809, 0)")
            await _execute(connection, f"CREATE SCHEMA IF NOT EXISTS {self._name}")
            if self._extension is not None:
                await _execute(connection, f"CREATE EXTENSION IF NOT EXISTS {self._extension} WITH SCHEMA public")
            await _execute(
                connection, "CREATE TABLE IF NOT EXISTS slot_steps (name TEXT PRIMARY KEY, steps INTEGER NOT NULL)"
            )
            rows = await _execute(connection, "SELECT steps FROM slot_steps WHERE name = %s", (self._contract.name,))
            done = rows[0][0] if rows else 0
            if done > len(self._migrations):
                raise SlotError(
                    self._contract.name,
                    "unavailable",
                    f"The tables of {self._contract.name} were made by a newer Freehold",
                    hint="Update this Freehold, or choose another schema in the settings of the slot",
                )
            for step in self._migrations[done:]:
                for statement in step.split(";"):
                    if statement.strip():
                        await _execute(connection, statement)
            await _execute(
                connection,
                "INSERT INTO slot_steps (name, steps) VALUES (%s, %s)"
                " ON CONFLICT (name) DO UPDATE SET steps = EXCLUDED.steps",
                (self._contract.name, len(self._migrations)),
            )

    @asynccontextmanager
    async def _connection(self) -> "AsyncIterator[psycopg.AsyncConnection[Row]]":
        """A connection for one call. One that failed is thrown away. Errors of the server become `unavailable`."""
        psycopg = _import_psycopg(self._settings)
        async with self._free:
            try:
                connection = self._idle.pop() if self._idle else await self._open()
                try:
                    yield connection
                finally:
                    idle = psycopg.pq.TransactionStatus.IDLE
                    if not connection.closed and connection.info.transaction_status == idle:
                        self._idle.append(connection)
                    else:
                        await connection.close()
            except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected):
                raise
            except (psycopg.Error, OSError) as error:
                raise slot_unavailable(self._contract.name, _tell(error)) from error

    async def _open(self) -> "psycopg.AsyncConnection[Row]":
        import psycopg

        options = f"-c search_path={self._name} -c statement_timeout=30s -c lock_timeout=4s"
        if self._extension is not None:
            options = options.replace(f"={self._name}", f"={self._name},public") + _OPTIONS_OF[self._extension]
        connecting = read_connection(self._settings, self._more_settings)
        parameters: dict[str, Any] = {**connecting, "options": options}
        folder = str(parameters["host"])
        if not folder.startswith("/"):
            return await psycopg.AsyncConnection.connect(autocommit=True, **parameters)
        relay = SocketRelay()
        async with relay.listen(Path(folder) / f".s.PGSQL.{parameters.get('port', DEFAULT_PORT)}") as host:
            connection = await psycopg.AsyncConnection.connect(autocommit=True, **{**parameters, "host": str(host)})
        self._relays[connection] = relay
        return connection

    async def _deadline(self, connection: "psycopg.AsyncConnection[Row]", work: Any) -> Any:
        """The result of a coroutine that uses the connection, within `CALL_TIMEOUT`.

        A server that hangs does not answer a request to cancel either, so the connection is cut instead.
        """
        task = asyncio.ensure_future(work)
        end, before = time.monotonic() + CALL_TIMEOUT, self._count_received(connection)
        problem: str | None = None
        try:
            while not task.done() and problem is None:
                await asyncio.wait({task}, timeout=min(LOOK_INTERVAL, max(0.0, end - time.monotonic())))
                if self._count_received(connection) - before > MAX_ANSWER:
                    problem = f"its answer is longer than {MAX_ANSWER >> 20} MiB"
                elif time.monotonic() > end:
                    problem = f"the server did not answer within {CALL_TIMEOUT:g} s"
        except asyncio.CancelledError:
            await _cut(connection, task)
            raise
        if problem is not None and not task.done():
            await _cut(connection, task)
            raise slot_unavailable(self._contract.name, problem)
        return task.result()

    def _count_received(self, connection: "psycopg.AsyncConnection[Row]") -> int:
        """The bytes that have come. The client reads a whole answer into memory before it hands anything out."""
        relay = self._relays.get(connection)
        return _ask_kernel(connection) if relay is None else relay.received


def _ask_kernel(connection: "psycopg.AsyncConnection[Row]") -> int:
    """The bytes that have come over a TCP connection."""
    if connection.closed:
        return 0
    try:
        with socket.socket(fileno=os.dup(connection.fileno())) as own:
            facts = own.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RECEIVED_AT + 8)
    except OSError:
        return 0
    return int.from_bytes(facts[_RECEIVED_AT : _RECEIVED_AT + 8], sys.byteorder)


async def _cut(connection: "psycopg.AsyncConnection[Row]", task: "asyncio.Future[Any]") -> None:
    """Shut the socket of a connection, and wait for what used it, which fails at once."""
    with suppress(OSError), socket.socket(fileno=os.dup(connection.fileno())) as own:
        own.shutdown(socket.SHUT_RDWR)
    await asyncio.wait({task})
    if not task.cancelled():
        task.exception()


async def _run_steps(connection: "psycopg.AsyncConnection[Row]", steps: Steps[T]) -> T:
    try:
        statement = next(steps)
        while True:
            rows: list[Row] = []
            if statement.only != "sqlite":
                rows = await _execute(connection, statement.sql.replace("?", "%s"), statement.parameters)
            statement = steps.send(rows)
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        steps.close()


async def _execute(connection: "psycopg.AsyncConnection[Row]", sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
    cursor = await connection.execute(cast("Any", sql), parameters or None)
    return await cursor.fetchall() if cursor.description is not None else []


def _import_psycopg(settings: ExternalSettings) -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise settings.wrong(
            f"slots.{settings.slot} is in PostgreSQL, and the client for it is not installed",
            "pip install 'freehold[postgres]'",
        ) from error
    return psycopg


def _tell(error: Exception) -> str:
    """The first line: the rest may contain values."""
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
