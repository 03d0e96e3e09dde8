"""One time that the file of a workflow runs: it is told what the journal has, until it waits or ends."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from freehold.errors import FreeholdError
from freehold.routines.workflows.messages import (
    MAX_RESULT,
    LineBuffer,
    StepAsked,
    StepRan,
    WentIdle,
    WorkflowEnded,
    bad_message,
    read_message,
)
from freehold.routines.workflows.program import WorkflowProgram
from freehold.routines.workflows.records import Workflow, WorkflowStep
from freehold.routines.workflows.step_store import StepEnd
from freehold.routines.workflows.store import WorkflowStore

LINGER = 0.5
"""Seconds that a program is kept which waits for something: it may come at once."""
PRINTED_TIMEOUT = 5.0
MAX_PENDING = 256

ExecutionEnd = Literal["ended", "waiting", "lost"]
"""`lost`: the computer has gone. The file has to run again."""


@dataclass(frozen=True)
class ExecutionBounds:
    """`longest`: seconds that the file may work without coming to a step. `steps`: how many it may have."""

    longest: float = 3600.0
    steps: int = 1000
    linger: float = LINGER


class StepHost:
    """What an execution needs from outside."""

    def __init__(
        self,
        begin: Callable[[WorkflowStep], None],
        mark: Callable[[str, WorkflowStep], Awaitable[int | None]],
        find_event: Callable[[], Awaitable[int | None]],
    ) -> None:
        """`begin` starts a step of the host, `mark` records the files before or after a function."""
        self.begin = begin
        self.mark = mark
        self.find_event = find_event


class WorkflowExecution:
    def __init__(
        self,
        store: WorkflowStore,
        workflow: Workflow,
        program: WorkflowProgram,
        host: StepHost,
        bounds: ExecutionBounds,
        holder: str,
    ) -> None:
        """`holder` is the name by which the workflow was claimed."""
        self._store = store
        self._workflow = workflow
        self._program = program
        self._host = host
        self._bounds = bounds
        self._holder = holder
        self._changed = asyncio.Event()
        self._pending: set[str] = set()
        self._running: dict[str, WorkflowStep] = {}
        """Functions that the program calls now."""
        self._asked: set[str] = set()
        self._sent = 0
        self._idles = 0
        self._is_idle = False

    def poke(self) -> None:
        """A step has ended or may go on, or the workflow was cancelled."""
        self._changed.set()

    async def run(self) -> ExecutionEnd:
        """Returns when the file has ended, waits, or must not go on. Leaving it, the program is to be ended."""
        try:
            return await self._serve()
        except FreeholdError as error:
            state: Literal["changed", "failed"] = "changed" if error.code == "workflow.changed.conflict" else "failed"
            if error.code == "workflow.stopped":
                return "ended"
            if error.code.startswith("workflow."):
                await self._end(state, error.message)
                return "ended"
            return await self._lose(error.message)
        finally:
            for step in self._running.values():  # cut off: what changes from now on is not its own
                await self._host.mark("after", step)

    async def _serve(self) -> ExecutionEnd:
        buffer = LineBuffer()
        reading = asyncio.ensure_future(self._program.read())
        changed = asyncio.ensure_future(self._changed.wait())
        try:
            while True:
                timeout = self._bounds.linger if self._is_idle else self._bounds.longest
                done, _ = await asyncio.wait({reading, changed}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
                end: ExecutionEnd | None = None
                if changed in done:
                    self._changed.clear()
                    changed = asyncio.ensure_future(self._changed.wait())
                    end = await self._deliver()
                if end is None and reading in done:
                    data = reading.result()
                    if not data:
                        return await self._see_gone()
                    reading = asyncio.ensure_future(self._program.read())
                    for line in buffer.feed(data):
                        end = end or await self._see(line)
                if end is None and not done:
                    end = await self._rest()
                if end is not None:
                    return end
        finally:
            for task in (reading, changed):
                task.cancel()
            await asyncio.gather(reading, changed, return_exceptions=True)

    async def _see(self, line: bytes) -> ExecutionEnd | None:
        message = read_message(line)
        if isinstance(message, WentIdle):
            self._idles += 1
            if self._idles > self._sent + len(self._asked) + 2:
                raise bad_message("it says again and again that it waits")
            self._is_idle = message.got == self._sent and bool(self._pending)
        elif isinstance(message, StepAsked):
            self._is_idle = False
            await self._see_asked(message)
        elif isinstance(message, StepRan):
            await self._see_ran(message)
        else:
            await self._see_end(message)
            return "ended"
        return None

    async def _see_asked(self, asked: StepAsked) -> None:
        if asked.place in self._asked or len(self._pending) >= MAX_PENDING:
            raise bad_message(f"step {asked.place} comes twice, or too many steps wait at once")
        self._asked.add(asked.place)
        self._pending.add(asked.place)
        after = await self._host.find_event() if asked.kind == "event" else None
        step, begins = await self._store.journal.keep(
            lambda: self._store.steps.begin_step(
                self._workflow.id, asked, self._bounds.steps, self._holder, after=after
            )
        )
        if begins:
            await self._begin(step)
        await self._tell(step)

    async def _begin(self, step: WorkflowStep) -> None:
        if step.kind == "step":
            await self._host.mark("before", step)
            self._running[step.place] = step
            await self._send({"of": step.place, "run": True})
        else:
            self._host.begin(step)

    async def _tell(self, step: WorkflowStep) -> None:
        """Its result, if it has one."""
        if step.state not in ("done", "failed") or step.place not in self._pending:
            return
        self._pending.discard(step.place)
        answer = {"error": step.error} if step.state == "failed" else {"result": step.result}
        await self._send({"of": step.place, **answer})

    async def _see_ran(self, ran: StepRan) -> None:
        step = self._running.pop(ran.place, None)
        if step is None:
            raise bad_message(f"step {ran.place} was not begun")
        entry = await self._host.mark("after", step)
        error = ran.error
        if error is None and len(json.dumps(ran.result)) > MAX_RESULT:
            error = f"The result is longer than {MAX_RESULT} characters: write it into a file, and return its path"
        end = StepEnd(None if error else ran.result, error, entry=entry)
        await self._store.journal.keep(self._store.steps.end_step, step, end)
        ended = await self._store.journal.keep(self._store.steps.get_step, step.workflow, step.place)
        await self._tell(ended)
        self._host.begin(ended)  # it may wait for another try

    async def _deliver(self) -> ExecutionEnd | None:
        workflow = await self._store.journal.keep(self._store.get, self._workflow.id)
        if workflow.state != "working":
            return "ended"
        for step in await self._store.journal.keep(self._store.steps.list_at, workflow.id, tuple(self._pending)):
            if step.state == "waiting" and step.wake == 0:
                asked = StepAsked(step.place, step.kind, step.title, step.given)
                begun, begins = await self._store.journal.keep(
                    self._store.steps.begin_step, workflow.id, asked, self._bounds.steps, self._holder
                )
                if begins:
                    await self._begin(begun)
            await self._tell(step)
        return None

    async def _rest(self) -> ExecutionEnd | None:
        """Nothing has come for a while."""
        if not self._is_idle:
            words = f"It worked for {self._bounds.longest:g} s without coming to a step, which is workflows.longest"
            await self._end("failed", words)
            return "ended"
        if await self._store.journal.keep(self._store.suspend, self._workflow.id, tuple(self._pending)):
            return "waiting"
        return await self._deliver()

    async def _see_end(self, ended: WorkflowEnded) -> None:
        printed = ""
        with suppress(TimeoutError, FreeholdError):
            async with asyncio.timeout(PRINTED_TIMEOUT):
                printed = await self._program.read_printed()
        if ended.error is not None:
            await self._end("failed", ended.error, printed)
            return
        titles = await self._store.journal.keep(self._store.steps.list_titles, self._workflow.id)
        left = [place for place in titles if place not in self._asked]
        if left:
            words = f"step {left[0]}, {titles[left[0]]}, does not come any more"
            await self._end("changed", f"The steps are not those that began: {words}", printed)
        elif len(json.dumps(ended.result)) > MAX_RESULT:
            await self._end("failed", f"The result is longer than {MAX_RESULT} characters", printed)
        else:
            await self._store.journal.keep(
                lambda: self._store.end(self._workflow.id, "done", result=ended.result, output=printed, of=("working",))
            )

    async def _see_gone(self) -> ExecutionEnd:
        """The program has ended and has not said how."""
        if self._running:
            return await self._lose("Its program ended")
        printed = ""
        with suppress(TimeoutError, FreeholdError):
            async with asyncio.timeout(PRINTED_TIMEOUT):
                printed = await self._program.read_printed()
        await self._end("failed", "The program of the workflow ended before its main has returned", printed)
        return "ended"

    async def _lose(self, words: str) -> ExecutionEnd:
        for step in list(self._running.values()):
            if not step.may_repeat:
                await self._store.journal.keep(self._store.steps.mark_uncertain, step)
                return "ended"
            await self._store.journal.keep(self._store.steps.end_step, step, StepEnd(error=words))
        await self._store.journal.keep(self._store.interrupt, self._workflow.id)
        return "lost"

    async def _end(self, state: Literal["failed", "changed"], error: str, printed: str | None = None) -> None:
        await self._store.journal.keep(
            lambda: self._store.end(self._workflow.id, state, error=error, output=printed, of=("working",))
        )

    async def _send(self, message: dict[str, object]) -> None:
        self._sent += 1
        self._is_idle = False
        await self._program.write(json.dumps(message).encode() + b"\n")
