"""A slot that is kept here, in tables of the timeline's database. A change and its event are stored together."""

import asyncio
import contextvars
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

from freehold.errors import FreeholdError
from freehold.slots.answers import answer_once
from freehold.slots.contract import CallContext, Reply, SlotCall, SlotCaller, SlotContract, SlotUpkeep, SlotWrite
from freehold.slots.errors import SlotError, slot_unavailable
from freehold.slots.group_commit import GroupCommit
from freehold.slots.statement import Row, Statement, Steps, run_steps
from freehold.timeline import Timeline, Transaction

StepsOfCall = Mapping[type[SlotCall[Any]], Callable[[Any, CallContext], Steps[Any]]]
StepsOfOneCall = Callable[[Any, CallContext], Steps[Any]]
THREADS = 2


class TimelineTables:
    """Carries out the calls of one contract. Blocking work is done in threads of its own."""

    kind = "local"
    records_events = True

    def __init__(
        self,
        contract: SlotContract,
        timeline: Timeline,
        schema: Sequence[str],
        steps_of_call: StepsOfCall,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._contract = contract
        self._timeline = timeline
        self._schema = schema
        self._steps_of_call = steps_of_call
        self._clock = clock
        self._commit = GroupCommit(timeline)
        self._threads: ThreadPoolExecutor | None = None

    async def connect(self) -> None:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, f"slot-{self._contract.name}")
        await self._run(self._timeline.ensure_schema, self._contract.name, *self._schema)

    async def health(self) -> None:
        # The table of answers is in every slot.
        await self._run(self._timeline.query, f"SELECT at FROM {self._contract.name}_answer LIMIT 1")  # noqa: S608

    async def close(self) -> None:
        threads, self._threads = self._threads, None
        if threads is not None:
            await asyncio.to_thread(threads.shutdown)

    async def call(self, request: SlotCall[Reply], caller: SlotCaller) -> Reply:
        return await self.carry_out(request, caller, self._steps_of_call[type(request)])

    async def carry_out(self, request: SlotCall[Reply], caller: SlotCaller, make_steps: StepsOfOneCall) -> Reply:
        """The reply of these steps, in one transaction with the answer for a repetition and the timeline event."""
        context = CallContext(caller, round(self._clock(), 6))
        if not isinstance(request, SlotWrite | SlotUpkeep):
            read = partial(run_steps, make_steps(request, context), self._read)
            return cast("Reply", await self._run(read))
        with self._family_errors() as threads:
            return cast("Reply", await self._commit.run(self._change(request, context, make_steps), threads))

    def _change(
        self, request: SlotWrite[Any] | SlotUpkeep[Any], context: CallContext, make_steps: StepsOfOneCall
    ) -> Callable[[Transaction], Any]:
        caller = context.caller

        def change(tx: Transaction) -> Any:
            steps = make_steps(request, context)

            def execute(statement: Statement) -> list[Row]:
                if statement.only == "postgres":
                    return []
                return tx.execute(statement.sql, statement.parameters).fetchall()

            if isinstance(request, SlotUpkeep):
                return run_steps(steps, execute)
            once = answer_once(self._contract.name, request, caller, steps, context.now)
            reply, repeated = run_steps(once, execute)
            if not repeated:
                tx.append(request.event, request.describe(reply), who=caller.name)
            return reply

        return change

    def _read(self, statement: Statement) -> list[Row]:
        return [] if statement.only == "postgres" else self._timeline.query(statement.sql, statement.parameters)

    async def in_thread(self, function: Callable[..., Any], *args: object) -> Any:
        """What a function of the slot returns, which may use the timeline. Errors become those of the family."""
        return await self._run(function, *args)

    async def _run(self, function: Callable[..., Any], *args: object) -> Any:
        call = partial(contextvars.copy_context().run, partial(function, *args))
        with self._family_errors() as threads:
            return await asyncio.get_running_loop().run_in_executor(threads, call)

    @contextmanager
    def _family_errors(self) -> Iterator[ThreadPoolExecutor]:
        """The threads of the slot. Errors of other rooms become those of the family."""
        if self._threads is None:
            raise slot_unavailable(self._contract.name, "it is not connected")
        try:
            yield self._threads
        except SlotError:
            raise
        except FreeholdError as error:
            raise SlotError(self._contract.name, "unavailable", error.message, hint=error.next_step) from error
