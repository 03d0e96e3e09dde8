"""Steps that are prompts to agents. The session recognises the prompt by its key, so it is sent once."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace

from freehold.agents.sessions.answered_turns import list_own_turns
from freehold.agents.sessions.service import SessionService
from freehold.agents.threads import run_blocking
from freehold.errors import FreeholdError
from freehold.routines.agent_turn import find_end, find_turn, list_questions, measure_cost
from freehold.routines.prompt_text import build_prompt
from freehold.routines.workflows.messages import AgentInput, read_input
from freehold.routines.workflows.records import Workflow, WorkflowStep
from freehold.routines.workflows.step_store import StepEnd
from freehold.routines.workflows.store import WorkflowStore

CHECK_INTERVAL = 1.0
PARK_GRACE = 60.0
"""Seconds that the agent of a step that waits for the owner is kept, for an owner who is there."""


@dataclass
class _Live:
    """A step whose agent works. `deadline` is a time of the event loop."""

    step: WorkflowStep
    deadline: float
    released: float | None = None
    """When the agent is ended, if it waits for the owner."""


class AgentSteps:
    """`watch` must run as long as it is used."""

    def __init__(self, sessions: SessionService, store: WorkflowStore, *, grace: float = PARK_GRACE) -> None:
        self._sessions = sessions
        self._store = store
        self._grace = grace
        self._live: dict[int, _Live] = {}
        self._stopping: dict[asyncio.Event, str] = {}
        """Set when an agent has ended that is stopped now, with its workflow."""
        self._any = asyncio.Event()
        self._opening = asyncio.Lock()
        """Two steps that begin at once may have the same session."""

    async def begin(self, workflow: Workflow, step: WorkflowStep) -> StepEnd | None:
        """Sends the prompt, unless it was sent. None when the end is found later, by `settle`."""
        given = read_input("agent", step.given)
        assert isinstance(given, AgentInput)
        assert step.session is not None  # chosen when it was stored
        who = f"workflow:{workflow.name[:60]}"
        async with self._opening:
            try:
                await self._sessions.get(step.session)
            except FreeholdError:
                title = f"Workflow {workflow.name}, step {step.place}"
                await self._sessions.open(given.agent, title, given.model, who=who, id=step.session)
        turn = step.turn or await find_turn(self._sessions, step.session, step.prompt_key)
        if turn is None:
            data = {} if given.data is None else {"data": given.data}
            prompt = {"text": build_prompt(workflow.name, given.prompt, data), "files": [], "images": []}
            turn, _ = await self._sessions.prompt(step.session, prompt, step.prompt_key, "queue", who=who)
        if step.turn is None:
            await self._store.journal.keep(self._store.steps.note_turn, step, turn)
        self._follow(replace(step, turn=turn), given.timeout)
        return None

    async def settle(self, workflow: Workflow, step: WorkflowStep) -> StepEnd | None:
        """How it has ended; None while it works or waits for the owner. Idempotent."""
        if step.session is None or step.turn is None:
            return None
        waiting = await list_questions(self._sessions, step.session, step.prompt_key)
        if waiting and workflow.asks == "refuse":
            for approval in waiting:
                with suppress(FreeholdError):  # answered meanwhile
                    await self._sessions.answer(approval.id, "reject", who=f"workflow:{workflow.name[:60]}")
            return None
        if waiting:
            title = str(waiting[0].data.get("title", ""))
            await self._store.journal.keep(self._store.steps.note_asks, step, f"It asks: {title}"[:500])
            live = self._live.get(step.number)
            if live is not None and live.released is None:
                live.released = asyncio.get_running_loop().time() + self._grace
            return None
        found = await find_end(self._sessions, step.session, step.turn)
        if found is None:
            if step.state == "waiting" and await self._store.journal.keep(self._store.steps.note_asks, step, None):
                self._live.pop(step.number, None)
            given = read_input("agent", step.given)
            assert isinstance(given, AgentInput)
            self._follow(step, given.timeout)
            return None
        self._live.pop(step.number, None)
        end, row = found
        entry = None if row is None else await self._find_entry(row.id, step.turn)
        if end.state == "done":
            return StepEnd(end.result, cost=end.cost, entry=entry)
        is_uncertain = end.state == "uncertain"
        return StepEnd(error=end.error or "The agent failed", is_uncertain=is_uncertain, cost=end.cost, entry=entry)

    async def stop(self, step: WorkflowStep, reason: str) -> None:
        """Ends its agent, and stores what it has cost. Idempotent."""
        stopped = asyncio.Event()
        self._stopping[stopped] = step.workflow
        self._live.pop(step.number, None)
        try:
            await self._stop(step, reason)
        finally:
            del self._stopping[stopped]
            stopped.set()

    async def wait_stopped(self, workflow: str) -> None:
        """Until the agents of a workflow have ended that are stopped now, and what they have cost is stored."""
        for stopped in [one for one, of in self._stopping.items() if of == workflow]:
            await stopped.wait()

    async def _stop(self, step: WorkflowStep, reason: str) -> None:
        if step.session is None:
            return
        with suppress(FreeholdError):
            await self._sessions.stop(step.session, reason)
        if step.turn is not None:
            with suppress(FreeholdError):
                cost = await measure_cost(self._sessions, step.session, step.turn)
                if cost is not None:
                    await self._store.journal.keep(self._store.steps.note_cost, step, cost)

    async def find_over_budget(self, workflow: Workflow) -> bool:
        """Whether what its agents have cost so far has reached its budget."""
        if workflow.budget is None:
            return False
        total = await self._store.journal.keep(self._store.sum_cost, workflow.id)
        for live in list(self._live.values()):
            step = live.step
            if step.workflow == workflow.id and step.session is not None and step.turn is not None:
                with suppress(FreeholdError):
                    total += await measure_cost(self._sessions, step.session, step.turn) or 0.0
        return total >= workflow.budget

    async def wait_live(self) -> list[WorkflowStep]:
        """The steps whose agents run, a moment later. Waits until there is one."""
        await self._any.wait()
        await asyncio.sleep(CHECK_INTERVAL)
        now = asyncio.get_running_loop().time()
        for live in list(self._live.values()):
            if live.released is not None and live.released <= now and live.step.session is not None:
                self._live.pop(live.step.number, None)
                with suppress(FreeholdError):
                    await self._sessions.release(live.step.session, "It waits for the owner")
        if not self._live:
            self._any.clear()
        return [live.step for live in self._live.values()]

    def list_workflows(self) -> set[str]:
        """Those that have an agent at work."""
        return {live.step.workflow for live in self._live.values()}

    def is_live(self, step: WorkflowStep) -> bool:
        return step.number in self._live

    def is_late(self, step: WorkflowStep) -> bool:
        """One that waits for the owner is not."""
        live = self._live.get(step.number)
        return live is not None and live.released is None and live.deadline <= asyncio.get_running_loop().time()

    def _follow(self, step: WorkflowStep, timeout: float) -> None:
        if step.number not in self._live:
            self._live[step.number] = _Live(step, asyncio.get_running_loop().time() + timeout)
            self._any.set()

    async def _find_entry(self, session: str, turn: int) -> int | None:
        """The entry of history with what a turn, or the last that goes on with what it has asked, has changed."""
        store, approvals = self._sessions.dependencies.store, self._sessions.dependencies.approvals.store
        own = await run_blocking(list_own_turns, store.turns, approvals, session, turn)
        ended = await run_blocking(store.find_last_event, session, "turn.ended", own[-1])
        changes = None if ended is None else ended.data.get("changes")
        if not isinstance(changes, dict) or not any(changes.get(name) for name in ("added", "changed", "removed")):
            return None
        entry = changes.get("entry")
        return entry if isinstance(entry, int) else None
