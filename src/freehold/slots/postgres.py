"""A slot that is kept in a PostgreSQL database: its tables, and how a call becomes one transaction."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from freehold.slots.answers import answer_once
from freehold.slots.contract import CallContext, Reply, SlotCall, SlotCaller, SlotContract, SlotUpkeep, SlotWrite
from freehold.slots.errors import slot_unavailable
from freehold.slots.postgres_connections import PostgresConnections, execute
from freehold.slots.settings import ExternalSettings
from freehold.slots.statement import Row, Steps
from freehold.slots.timeline_tables import StepsOfCall

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")
MAX_TRIES = 3
"""How often a transaction is tried that the server ended because of another one."""


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
        self._migrations = schema
        self._steps_of_call = steps_of_call
        self._clock = clock
        self._connections = PostgresConnections(
            settings, partial(slot_unavailable, contract.name), extension=extension, more_settings=more_settings
        )

    async def connect(self) -> None:
        await self._connections.migrate(self._contract.name, self._migrations)

    async def health(self) -> None:
        asked = f"SELECT at FROM {self._contract.name}_answer LIMIT 1"  # noqa: S608 - the name of a slot
        async with self._connections.connection() as connection:
            await self._connections.bound(connection, execute(connection, asked))

    async def close(self) -> None:
        await self._connections.close()

    async def define(self, sql: str) -> None:
        """Carries out a definition, such as of an index, that is there already or costs little."""
        async with self._connections.connection() as connection:
            await self._connections.bound(connection, execute(connection, sql))

    async def drop_schema(self) -> None:
        """Removes everything that this slot has stored. Only for a schema that was made for a trial."""
        async with self._connections.connection() as connection:
            await self._connections.bound(
                connection, execute(connection, f"DROP SCHEMA IF EXISTS {self._connections.schema} CASCADE")
            )

    async def call(self, request: SlotCall[Reply], caller: SlotCaller) -> Reply:
        from psycopg import errors

        for tries_left in reversed(range(MAX_TRIES)):
            try:
                async with self._connections.connection() as connection:
                    reply = await self._connections.bound(connection, self._carry_out(connection, request, caller))
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


async def _run_steps(connection: "psycopg.AsyncConnection[Row]", steps: Steps[T]) -> T:
    try:
        statement = next(steps)
        while True:
            rows: list[Row] = []
            if statement.only != "sqlite":
                rows = await execute(connection, statement.sql.replace("?", "%s"), statement.parameters)
            statement = steps.send(rows)
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        steps.close()
