"""Workflows inside the gateway: runs the files that are due, does what their steps ask for, and lets them wait.

Everything that must survive a crash is stored before it is acted on. For a workflow that waits nothing is held in memory.
"""

import asyncio
import logging
import math
import secrets
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from functools import partial
from typing import Literal

from freehold.agents.sessions.service import SessionService
from freehold.agents.threads import run_blocking
from freehold.computer.contract.conventions import WORKSPACE
from freehold.egress.models import ActiveStop
from freehold.errors import FreeholdError
from freehold.gateway.context import RouteContext
from freehold.routines.clock import Clock, WallClock
from freehold.routines.loops import keep_going, keep_quiet, keep_trying
from freehold.routines.records import ROUTINE
from freehold.routines.run_store import BACKWARDS
from freehold.routines.shell_command import StoppableCommand, mark_files, run_shell, tell_reason
from freehold.routines.workflows.agent_steps import PARK_GRACE, AgentSteps
from freehold.routines.workflows.event_steps import EventSteps
from freehold.routines.workflows.execution import LINGER, ExecutionBounds, StepHost, WorkflowExecution
from freehold.routines.workflows.journal import Journal, TimelineJournal, open_journal
from freehold.routines.workflows.messages import CommandInput, read_input
from freehold.routines.workflows.owner_questions import WorkflowQuestions
from freehold.routines.workflows.program import StartProgram, start_in_computer
from freehold.routines.workflows.records import Workflow, WorkflowStep
from freehold.routines.workflows.section import WorkflowsSection
from freehold.routines.workflows.step_store import StepEnd
from freehold.routines.workflows.store import MAX_SOURCE, WorkflowOrder, WorkflowStore
from freehold.slots import Slot
from freehold.timeline import TimelineEvent

KINDS = ("turn.ended", "approval.asked", "approval.answered", "session.deleted", "workflow.*", "models.resumed")
"""Timeline events that a workflow may wait for."""
OVER = frozenset({"workflow.done", "workflow.failed", "workflow.uncertain", "workflow.changed", "workflow.cancelled"})
RETRY_DELAY = 5.0
COMMANDS_AT_ONCE = 8
STOPPED = "The owner stopped all agents"
UNEXPECTED = "Freehold has an error: freehold logs shows the cause"

log = logging.getLogger("freehold.workflows")
ReadSource = Callable[[str], Awaitable[str]]


def make_service(context: RouteContext) -> "WorkflowService":
    """The service of the gateway."""
    services = context.services
    section = services.manifest.section(WorkflowsSection)
    journal = open_journal(section, services.timeline, services.vault.get)
    service = WorkflowService(context.sessions, section, events=services.slots.get("events"), journal=journal)

    async def stop(_stop: ActiveStop) -> None:
        await service.stop_all()

    services.models.on_stop(stop)
    services.owner_questions.service = WorkflowQuestions(service)
    return service


class WorkflowService:
    """A service of the gateway. `run` must run as long as it is used."""

    def __init__(
        self,
        sessions: SessionService,
        section: WorkflowsSection | None = None,
        *,
        events: Slot | None = None,
        clock: Clock | None = None,
        grace: float = PARK_GRACE,
        linger: float = LINGER,
        start: StartProgram | None = None,
        read_source: ReadSource | None = None,
        journal: Journal | None = None,
    ) -> None:
        """Without `events`, an event comes only from `StepStore.signal`. `start` and `read_source` are for tests.

        Without `journal` it is in the file of the timeline.
        """
        self._sessions = sessions
        self._section = section or WorkflowsSection()
        self._bounds = ExecutionBounds(self._section.longest, self._section.steps, linger)
        self.journal = journal or TimelineJournal(sessions.dependencies.store.timeline)
        self.store = WorkflowStore(self.journal, clock or WallClock())
        self._agents = AgentSteps(sessions, self.store, grace=grace)
        self._events = EventSteps(self.store, events)
        self._start = start or start_in_computer(sessions.dependencies)
        self._read_source = read_source or self._read_from_computer
        self._changed = asyncio.Event()
        self._places = asyncio.Semaphore(self._section.at_once)
        self._commands = asyncio.Semaphore(COMMANDS_AT_ONCE)
        self._working: set[str] = set()
        """Workflows whose file runs, or is about to."""
        self._executions: dict[str, WorkflowExecution] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """Those of the workflows whose file runs."""
        self._running: dict[tuple[str, int], StoppableCommand] = {}
        """Commands that run or wait for their turn, by workflow and step."""
        self._group: asyncio.TaskGroup | None = None
        self.ready = asyncio.Event()
        """Set when the tables are there and what was cut off is found."""
        self._tried = asyncio.Event()
        self._problem: FreeholdError | None = None
        """Why it is not ready yet."""
        self._stopped: set[str] = set()
        """Workflows that the owner has ended while the journal could not be reached: it does not know."""

    async def run(self) -> None:
        """Until cancelled."""
        await self._sessions.ready.wait()
        async with asyncio.TaskGroup() as group:
            self._group = group
            last = await run_blocking(self.journal.timeline.last)
            await keep_trying(self._prepare)
            self.ready.set()
            follow = partial(self._follow_timeline, 0 if last is None else last.seq)
            for loop in (self._keep_time, follow, self._guard_agents, self._events.run):
                group.create_task(keep_going(loop))

    async def wait_ready(self) -> None:
        """Until it can be used. Raises what keeps it from that, such as `workflows.unavailable`."""
        await self._tried.wait()
        if not self.ready.is_set() and self._problem is not None:
            raise self._problem

    async def _prepare(self) -> None:
        try:
            await self.journal.run(self.journal.prepare)
            await self._recover()
        except FreeholdError as error:
            self._problem = error
            raise
        finally:
            self._tried.set()

    async def _recover(self) -> None:
        for step in await self.journal.run(self.store.steps.list_cut_off):
            # What it has changed is its own, and what changes from now on is not.
            await self._mark(await self.journal.run(self.store.get, step.workflow), "after", step)
        for step in await self.journal.run(self.store.steps.recover):
            self._begin_step(step)

    def complete_order(self, order: WorkflowOrder) -> WorkflowOrder:
        """The order within the bounds of the manifest."""
        most = self._section.budget
        if most is None or order.budget is not None:
            return order
        return WorkflowOrder(order.file, order.data, most, order.asks, order.digest, order.run)

    # Time

    async def _keep_time(self) -> None:
        seen = math.inf  # it may have been set back while nothing ran
        while True:
            self._changed.clear()
            before, seen = seen, self.store.clock.now()
            if before - seen > BACKWARDS:
                await self.journal.keep(self.store.steps.plan_again)
            for id in tuple(self._stopped):
                await self.cancel(id, "owner", STOPPED)
                self._stopped.discard(id)
            await self.journal.run(self.journal.relay)
            wake = await self.journal.keep(self.store.steps.find_next_wake)
            if wake is not None and wake <= self.store.clock.now():
                await self.journal.keep(self.store.steps.wake_due)
                for execution in self._executions.values():
                    execution.poke()
                continue
            if self._sessions.dependencies.models.stopped is None:
                for id in await self.journal.keep(self.store.list_due):
                    self._run_file(id)
            await self.store.clock.wait(wake, self._changed)

    def _run_file(self, id: str) -> None:
        if id not in self._working:
            self._working.add(id)
            self._tasks[id] = self._spawn(self._work(id))

    # One workflow

    async def _work(self, id: str) -> None:
        """Runs the file until it waits or has ended."""
        try:
            async with self._places:
                is_lost = await self._execute(id) == "lost"
            if is_lost:
                await asyncio.sleep(RETRY_DELAY)
        except FreeholdError as error:
            log.warning("a workflow cannot run now: %s", error, extra={"workflow": id})
            await asyncio.sleep(RETRY_DELAY)
        except Exception:
            log.exception("a workflow failed unexpectedly", extra={"workflow": id})
            await keep_trying(partial(self.journal.keep, partial(self.store.end, id, "failed", error=UNEXPECTED)))
        finally:
            self._working.discard(id)
            self._tasks.pop(id, None)
            self._changed.set()

    async def _execute(self, id: str) -> str:
        await self._sessions.dependencies.wait_connected()
        found = await self.journal.keep(self.store.get, id)
        try:
            source = await self._read_source(found.file)
        except FreeholdError as error:
            if error.kind.name not in ("not-found", "invalid", "too-large"):
                raise
            state: Literal["failed", "changed"] = "failed" if found.source is None else "changed"
            await self.journal.keep(
                partial(self.store.end, id, state, error=f"{found.file}: {error.message}", of=("due",))
            )
            return "ended"
        holder = secrets.token_hex(8)
        workflow = await self.journal.keep(self.store.claim, id, source, holder)
        if workflow is None:
            return "ended"
        host = StepHost(self._begin_step, partial(self._mark, workflow), self._events.find_last)
        async with self._start(workflow) as program:
            execution = WorkflowExecution(self.store, workflow, program, host, self._bounds, holder)
            self._executions[id] = execution
            try:
                return await execution.run()
            finally:
                del self._executions[id]

    async def _read_from_computer(self, file: str) -> str:
        computer = self._sessions.dependencies.computer()
        return await computer.files.read_text(f"{WORKSPACE}/{file}", limit=MAX_SOURCE)

    async def _mark(self, workflow: Workflow, phase: Literal["before", "after"], step: WorkflowStep) -> int | None:
        """The entry of history with what the step has changed."""
        why = f"workflow {workflow.name}, step {step.place}"
        if workflow.who.startswith(ROUTINE):
            why = f"{tell_reason(workflow.who.removeprefix(ROUTINE))}: {why}"
        found = await mark_files(self._sessions.dependencies, phase, why)
        return found.entry if found is not None and found.changed and phase == "after" else None

    # Steps of the host

    def _begin_step(self, step: WorkflowStep) -> None:
        if step.kind == "command" and step.state == "begun":
            self._spawn(self._run_step(step, self._run_command))
        elif step.kind == "agent":
            self._spawn(self._run_step(step, self._run_agent))
        else:
            self._changed.set()
            self._events.poke()

    async def _run_step(self, step: WorkflowStep, run: Callable[[WorkflowStep], Awaitable[None]]) -> None:
        try:
            await run(step)
        except FreeholdError:
            raise
        except Exception:
            # A bug in one step must not let its workflow wait for ever.
            log.exception("a step failed unexpectedly", extra={"workflow": step.workflow, "step": step.place})
            await self._end_step(step, StepEnd(error=UNEXPECTED))

    async def _run_command(self, step: WorkflowStep) -> None:
        given = read_input(step.kind, step.given)
        assert isinstance(given, CommandInput)
        command = self._running[step.workflow, step.number] = StoppableCommand()
        try:
            # Read after it can be stopped, so that no end is missed.
            workflow = await self.journal.keep(self.store.get, step.workflow)
            async with self._commands:
                is_over = workflow.finished is not None
                how = None if is_over else await self._run_shell(workflow, step, given, command)
        finally:
            del self._running[step.workflow, step.number]
        if how is not None:
            await self._end_step(step, how)

    async def _run_shell(
        self, workflow: Workflow, step: WorkflowStep, given: CommandInput, command: StoppableCommand
    ) -> StepEnd | None:
        """None for one that was stopped before it began: its workflow has ended."""
        try:
            await self._mark(workflow, "before", step)
            try:
                if command.is_stopped:
                    return None
                end = await run_shell(
                    self._sessions.dependencies.computer(),
                    given.command,
                    told=b"",
                    variables={"WORKFLOW_ID": workflow.id, "WORKFLOW_STEP": step.place},
                    longest=given.timeout,
                    on_start=command.note,
                )
            finally:
                entry = await self._mark(workflow, "after", step)
            problem = end.problem if given.check or end.code < 0 else None
            error = None if problem is None else f"{problem}\n{end.output}".strip()
            return StepEnd({"code": end.code, "output": end.output}, error, entry=entry)
        except FreeholdError as problem_inside:
            return StepEnd(error=problem_inside.message)

    async def _run_agent(self, step: WorkflowStep) -> None:
        workflow = await self.journal.keep(self.store.get, step.workflow)
        try:
            if await self._agents.find_over_budget(workflow):
                await self._end_over_budget(workflow)
                return
            end = await self._agents.begin(workflow, step)
        except FreeholdError as error:
            end = StepEnd(error=error.message)
        if end is not None:
            await self._end_step(step, end)
        elif (await self.journal.keep(self.store.get, step.workflow)).finished is not None:
            # It ended while the prompt was on its way.
            await self._stop_cancelled(await self.journal.keep(self.store.steps.list_steps, step.workflow))
        else:
            await self._settle(step.session)

    async def _settle(self, session: str | None) -> None:
        """Looks whether the agents of steps in a session have ended or wait for the owner. Idempotent."""
        if session is None:
            return
        for step in await self.journal.keep(self.store.steps.list_agent_steps, session):
            workflow = await self.journal.keep(self.store.get, step.workflow)
            end = await self._agents.settle(workflow, step)
            if end is not None:
                await self._end_step(step, end)

    async def _end_step(self, step: WorkflowStep, how: StepEnd) -> None:
        """Tries again until that is stored: the disk may be full now."""
        with suppress(FreeholdError):
            await keep_trying(partial(self.journal.keep, self.store.steps.end_step, step, how))
        self._poke(step.workflow)

    def _poke(self, id: str) -> None:
        execution = self._executions.get(id)
        if execution is not None:
            execution.poke()
        self._changed.set()

    async def _guard_agents(self) -> None:
        """Ends agents that work too long or cost too much."""
        while True:
            steps = await self._agents.wait_live()
            for step in steps:
                if self._agents.is_late(step):
                    await self._agents.stop(step, "It worked too long")
                    timeout = step.given.get("timeout", 0)
                    await self._end_step(
                        step, StepEnd(error=f"The agent worked for {timeout:g} s, which is its longest")
                    )
            for id in {step.workflow for step in steps}:
                workflow = await self.journal.keep(self.store.get, id)
                if workflow.finished is None and await self._agents.find_over_budget(workflow):
                    await self._end_over_budget(workflow)

    async def _end_over_budget(self, workflow: Workflow) -> None:
        words = f"Its agents have cost {workflow.budget:.2f} US dollars, which is its budget"
        steps = await self.journal.keep(self.store.steps.list_steps, workflow.id)
        await self.journal.keep(partial(self.store.end, workflow.id, "failed", error=words))
        await self._stop_steps(steps, words)

    # Ending

    async def cancel(self, id: str, who: str, reason: str | None = None) -> Workflow:
        """Ends a workflow and what it has begun. Idempotent. Raises `workflow.not-found`."""
        steps = await self.journal.run(self.store.steps.list_steps, id)
        words = reason or f"{who} ended it"
        workflow = await self.journal.run(partial(self.store.cancel, id, who=who, reason=words))
        await self._stop_steps(steps, words)
        return workflow

    async def _stop_steps(self, steps: list[WorkflowStep], reason: str) -> None:
        for step in steps:
            if step.state not in ("begun", "waiting"):
                continue
            self._stop_command(step)
            if step.kind == "agent":
                await self._agents.stop(step, reason)
        if steps:
            self._poke(steps[0].workflow)

    def _stop_command(self, step: WorkflowStep) -> None:
        command = self._running.get((step.workflow, step.number))
        if command is not None:
            command.stop()

    async def stop_all(self) -> None:
        """The kill switch: ends the workflows that work. Those that wait for you, a time or an event go on later."""
        if not self.ready.is_set():
            return
        try:
            kinds = ("agent", "command", "step")
            open_steps = [await self.journal.run(self.store.steps.list_open_steps, kind) for kind in kinds]
            busy = {step.workflow for found in open_steps for step in found}
            for id in {*busy, *self._executions}:
                await self.cancel(id, "owner", STOPPED)
        except FreeholdError as error:
            log.warning("workflows are stopped, and stored as stopped later: %s", error)
            self._cut_off()

    def _cut_off(self) -> None:
        """Ends what works, without the journal. It is told when it is back."""
        commands = {id for id, _ in self._running}
        self._stopped |= {*self._tasks, *commands, *self._agents.list_workflows()}
        for command in self._running.values():
            command.stop()
        for task in self._tasks.values():
            task.cancel()

    # Events

    async def _follow_timeline(self, begin: int) -> None:
        async with aclosing(self.journal.timeline.follow(begin, KINDS)) as events:
            async for event in events:
                await self._see(event)

    async def _see(self, event: TimelineEvent) -> None:
        if event.kind in OVER:
            # Ended by another process, perhaps: what it has begun here ends too.
            steps = await self.journal.keep(self.store.steps.list_steps, str(event.data["workflow"]))
            await self._stop_cancelled(steps)
            self._poke(str(event.data["workflow"]))
        elif event.kind.startswith("workflow."):
            self._poke(str(event.data["workflow"]))
        elif event.kind == "models.resumed":
            self._changed.set()
        else:
            await self._settle(str(event.data.get("session")))

    async def wait_stopped(self, id: str) -> None:
        """Until everything has ended that a workflow has begun which has ended, and what it has cost is stored."""
        await self._stop_cancelled(await self.journal.run(self.store.steps.list_steps, id))
        await self._agents.wait_stopped(id)

    async def _stop_cancelled(self, steps: list[WorkflowStep]) -> None:
        for step in steps:
            if step.state != "cancelled":
                continue
            self._stop_command(step)
            if step.kind == "agent" and self._agents.is_live(step):
                await self._agents.stop(step, "The workflow ended")

    def _spawn(self, work: Awaitable[None]) -> asyncio.Task[None]:
        assert self._group is not None
        return self._group.create_task(keep_quiet(work))
