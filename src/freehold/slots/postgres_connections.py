"""Connections to a PostgreSQL database of the owner: how they are opened, kept, bounded, and their tables made."""

import asyncio
import os
import re
import select
import socket
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast
from urllib.parse import parse_qsl, unquote, urlsplit
from weakref import WeakKeyDictionary

from freehold.errors import FreeholdError
from freehold.slots.settings import ExternalSettings
from freehold.slots.socket_relay import SocketRelay
from freehold.slots.statement import Row

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
            f"{settings.where}.url is not an address of a PostgreSQL database",
            'url = "postgresql://user@db.example.com/freehold", with password = "secret:NAME" beside it',
        )
    given = dict(parse_qsl(parts.query))
    host = unquote(parts.hostname or "") or given.pop("host", "")
    if given:
        raise settings.wrong(
            f"{settings.where}.url has parameters that are not known: {', '.join(sorted(given))}",
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


class PostgresConnections:
    """A few connections to one schema of a database. Used by one event loop."""

    def __init__(
        self,
        settings: ExternalSettings,
        make_error: Callable[[str], FreeholdError],
        *,
        schema: str = "freehold",
        extension: Literal["vector"] | None = None,
        more_settings: Sequence[str] = (),
    ) -> None:
        """`make_error` makes the error that says why the server cannot be reached. `schema` is the one by default."""
        self._settings = settings
        self._make_error = make_error
        self._extension = extension
        self._more_settings = more_settings
        self._idle: deque[psycopg.AsyncConnection[Row]] = deque()
        self._relays: WeakKeyDictionary[psycopg.AsyncConnection[Row], SocketRelay] = WeakKeyDictionary()
        """For connections over a Unix socket, whose bytes nobody else counts."""
        self._free = asyncio.Semaphore(MAX_CONNECTIONS)
        self.schema = settings.find("schema") or schema
        if _NAME.fullmatch(self.schema) is None:
            raise settings.wrong(f"{settings.where}.schema is not a plain name", "Use lower-case letters and digits")

    async def close(self) -> None:
        while self._idle:
            await self._idle.pop().close()

    async def migrate(self, name: str, steps: Sequence[str]) -> None:
        """Makes the tables of `name`, or brings them to this version. Safe when two Freeholds connect at once."""
        async with self.connection() as connection:
            await self.bound(connection, self._migrate(connection, name, steps))

    async def _migrate(self, connection: "psycopg.AsyncConnection[Row]", name: str, steps: Sequence[str]) -> None:
        async with connection.transaction():
            await execute(connection, "SELECT pg_advisory_xact_lock(7305809, 0)")
            await execute(connection, f"CREATE SCHEMA IF NOT EXISTS {self.schema}")
            if self._extension is not None:
                await execute(connection, f"CREATE EXTENSION IF NOT EXISTS {self._extension} WITH SCHEMA public")
            await execute(
                connection, "CREATE TABLE IF NOT EXISTS slot_steps (name TEXT PRIMARY KEY, steps INTEGER NOT NULL)"
            )
            rows = await execute(connection, "SELECT steps FROM slot_steps WHERE name = %s", (name,))
            done = rows[0][0] if rows else 0
            if done > len(steps):
                raise self._settings.wrong(
                    f"The tables of {name} were made by a newer Freehold",
                    f"Update this Freehold, or choose another schema in {self._settings.where}",
                )
            for step in steps[done:]:
                for statement in step.split(";"):
                    if statement.strip():
                        await execute(connection, statement)
            await execute(
                connection,
                "INSERT INTO slot_steps (name, steps) VALUES (%s, %s)"
                " ON CONFLICT (name) DO UPDATE SET steps = EXCLUDED.steps",
                (name, len(steps)),
            )

    @asynccontextmanager
    async def connection(self) -> "AsyncIterator[psycopg.AsyncConnection[Row]]":
        """A connection for one call. One that failed is thrown away. Errors of the server become `unavailable`."""
        psycopg = _import_psycopg(self._settings)
        async with self._free:
            try:
                connection = await self._take_idle() or await self._open()
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
                raise self._make_error(_tell(error)) from error

    async def _take_idle(self) -> "psycopg.AsyncConnection[Row] | None":
        """One that is open. What comes by itself on a connection that nobody uses is its end."""
        while self._idle:
            connection = self._idle.pop()
            if not connection.closed and not _has_input(connection):
                return connection
            await connection.close()
        return None

    async def _open(self) -> "psycopg.AsyncConnection[Row]":
        import psycopg

        options = f"-c search_path={self.schema} -c statement_timeout=30s -c lock_timeout=4s"
        if self._extension is not None:
            options = options.replace(f"={self.schema}", f"={self.schema},public") + _OPTIONS_OF[self._extension]
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

    async def bound(self, connection: "psycopg.AsyncConnection[Row]", work: Coroutine[Any, Any, T]) -> T:
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
            raise self._make_error(problem)
        return task.result()

    def _count_received(self, connection: "psycopg.AsyncConnection[Row]") -> int:
        """The bytes that have come. The client reads a whole answer into memory before it hands anything out."""
        relay = self._relays.get(connection)
        return _ask_kernel(connection) if relay is None else relay.received


def _has_input(connection: "psycopg.AsyncConnection[Row]") -> bool:
    looking = select.poll()
    looking.register(connection.fileno(), select.POLLIN)
    return bool(looking.poll(0))


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


async def execute(connection: "psycopg.AsyncConnection[Row]", sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
    cursor = await connection.execute(cast("Any", sql), parameters or None)
    return await cursor.fetchall() if cursor.description is not None else []


def _import_psycopg(settings: ExternalSettings) -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise settings.wrong(
            f"{settings.where} names a PostgreSQL database, and the client for it is not installed",
            f"{sys.executable} -m pip install 'freehold[postgres]'",
        ) from error
    return psycopg


def _tell(error: Exception) -> str:
    """The first line: the rest may contain values."""
    lines = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
