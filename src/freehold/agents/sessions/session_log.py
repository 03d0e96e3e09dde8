"""Stores and publishes what happens in one session: events, deltas, and the begin and end of its turns."""

import asyncio
import json
from typing import Any

from freehold.agents.acp.json_rpc import AgentError, Json
from freehold.agents.sessions.dependencies import SessionDependencies
from freehold.agents.sessions.rows import DraftEvent, Status, TurnRow
from freehold.agents.sessions.transcript import TranscriptBuilder
from freehold.agents.sessions.turn_summary import TurnSummary
from freehold.agents.sessions.turn_trace import ToolSpans
from freehold.agents.sessions.unfinished_messages import UnfinishedMessage, UnfinishedMessages
from freehold.agents.threads import run_blocking
from freehold.errors import FreeholdError
from freehold.observe.agent_spans import set_usage
from freehold.observe.tracing import current_span

MAX_TURN = 256 * 1024 * 1024
"""Characters that an agent may add to the transcript between two prompts. The host stores them, outside of its limits."""

EVENT_SIZE = 1_024
"""About what an event takes beside its text: its row, and its line in the timeline."""


class SessionLog:
    """`turn` is the number of the running turn. `transcript` collects what the agent sends."""

    def __init__(self, dependencies: SessionDependencies, session: str, unfinished: UnfinishedMessages) -> None:
        self._dependencies = dependencies
        self._session = session
        self.transcript = TranscriptBuilder()
        self._unfinished = unfinished
        self._message = UnfinishedMessage(session, self.transcript)
        self.summary = TurnSummary(dependencies, session)
        self.turn: int | None = None
        self._tool_spans = ToolSpans(session)
        self._stored = 0
        """Characters of what the agent has added since the last prompt."""

    def add_update(self, update: Json) -> None:
        """Adds an update and publishes its deltas at once."""
        self.collect_update(update)
        self.publish_deltas()

    def collect_update(self, update: Json) -> None:
        """Adds an update."""
        self.transcript.add_update(update)
        tool = self.transcript.tool_calls.get(str(update.get("toolCallId")))
        if tool is not None and self.turn is not None:
            self._tool_spans.follow(tool)

    def publish_deltas(self) -> None:
        deltas = self.transcript.pop_deltas()
        for delta in deltas:
            self._dependencies.watchers.publish_delta(self._session, delta)
        if deltas and self.turn is not None:
            self._unfinished.note_growth(self._message, self.turn)

    async def publish_session(self) -> None:
        row = await run_blocking(self._dependencies.store.get, self._session)
        self._dependencies.watchers.publish_session(row)

    async def append(self, turn: int | None, events: list[DraftEvent], **more: Any) -> None:
        stored = await run_blocking(self._dependencies.store.append, self._session, turn, events, **more)
        self._dependencies.watchers.publish_events(self._session, stored)
        calls = [data for kind, data in events if kind == "tool"]
        if calls:
            await run_blocking(self._note_calls, turn, calls)

    def _note_calls(self, turn: int | None, calls: list[Json]) -> None:
        agent = self._dependencies.store.get(self._session).agent
        self._dependencies.note_calls(self._session, turn, agent, calls)

    async def append_updates(self, events: list[DraftEvent]) -> None:
        """Stores what the agent has sent. Raises `agent.too-large` when it is too much for one turn.

        It is stored also if the caller is cancelled meanwhile, as at the end of the gateway: the owner has seen it.
        """
        storing = asyncio.ensure_future(self._append_fitting(events, self.transcript.last_complete))
        try:
            await asyncio.shield(storing)
        except asyncio.CancelledError:
            await asyncio.gather(storing, return_exceptions=True)
            raise

    async def _append_fitting(self, events: list[DraftEvent], complete: int) -> None:
        if await run_blocking(self._count_fitting, events) < len(events):
            raise AgentError(
                "agent.too-large",
                f"The agent was stopped: it sent more than {MAX_TURN // 1024**2} MB for the transcript in one turn",
                hint="Send a prompt to start it again",
            )
        await self.append(self.turn, events, complete=complete)

    def _count_fitting(self, events: list[DraftEvent]) -> int:
        """How many of these events the transcript takes."""
        for number, (_, data) in enumerate(events):
            self._stored += EVENT_SIZE + len(json.dumps(data))
            if self._stored > MAX_TURN:
                return number
        return len(events)

    async def begin_turn(self, turn: TurnRow, entry: int | None) -> None:
        """Raises `turn.dropped.conflict` when the prompt was cancelled. `entry`: the state of the files before it."""
        store = self._dependencies.store
        row = await run_blocking(store.get, self._session)
        self._dependencies.models.set_turn(self._session, str(turn.turn))
        events = await run_blocking(store.turns.begin, self._session, turn, entry, who=f"agent:{row.agent}")
        self.turn = turn.turn
        self._stored = 0
        self._dependencies.watchers.publish_events(self._session, events)
        await self.publish_session()

    async def end_turn(
        self, turn: int, reason: str, error: FreeholdError | None, before: int | None, reported_usage: object = None
    ) -> None:
        self.transcript.finish_message()
        events = self.transcript.pop_events()
        events = events[: await run_blocking(self._count_fitting, events)]
        self.publish_deltas()
        await self._dependencies.approvals.withdraw(self._session)
        changes = await self.summary.changes(turn, before)
        usage = await self.summary.usage(turn, reported_usage)
        ended: Json = {"stop_reason": reason, "changes": changes, "usage": usage}
        error = self._explain(error)
        if error is not None:
            events.append(("error", dict(error.body())))
            ended["error"] = dict(error.body())
        status: Status = "failed" if error is not None and reason != "cancelled" else "idle"
        if await run_blocking(self._dependencies.approvals.store.list_pending, self._session):
            status = "needs_you"
        cost = usage["cost"] if isinstance(usage["cost"], float) else None
        self._dependencies.models.set_turn(self._session, None)
        self._trace_end(usage, error)
        await self.append(turn, [*events, ("turn.ended", ended)], status=status, cost=cost, ended=True)
        self.turn = None
        await self.publish_session()

    def _trace_end(self, usage: Json, error: FreeholdError | None) -> None:
        self._tool_spans.end_turn()
        seen = current_span()
        set_usage(seen, usage["input"] or 0, usage["output"] or 0)
        if error is not None:
            seen.set("error.type", error.code)

    def _explain(self, error: FreeholdError | None) -> FreeholdError | None:
        """The model gateway knows better than the agent why a request failed: some agents say only "internal error"."""
        if error is None or error.code == "agent.refused":
            blocked = self._dependencies.models.blocked(self._session)
            # An agent that ended well has got over a provider that did not answer for a moment.
            if blocked is not None and (error is not None or blocked.code != "models.unreachable"):
                return blocked
        return error
