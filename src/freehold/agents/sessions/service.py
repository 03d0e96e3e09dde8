"""Every session of the house: opened, prompted, answered, taken back; those at work run in here."""

import asyncio
import logging
from contextlib import suppress
from typing import Any, Literal

from freehold.agents.approvals import Answer, Approval
from freehold.agents.board import Kept
from freehold.agents.ground import Ground
from freehold.agents.installing import problem_with
from freehold.agents.live import IDLE, Live
from freehold.agents.prompting import belated, inside
from freehold.agents.registry import choose_model, find_agent
from freehold.agents.rpc import AgentFault, Json
from freehold.agents.store import SessionRow, Status
from freehold.errors import FreeholdError

MAX_LIVE = 120
"""Agents at once; each takes some hundred megabytes of the computer's memory."""

MAX_IDLE = 3
"""Agents that are kept running with nothing to do, for a quick answer to the next prompt."""

TO_START = 90.0
HISTORY_PATIENCE = 600.0

When = Literal["now", "queue", "steer"]
What = Literal["files", "chat", "both"]

log = logging.getLogger("freehold.agents")


class Room:
    """`run` keeps it going; everything else may be called from any coroutine of the same loop."""

    def __init__(self, ground: Ground, *, idle: float = IDLE) -> None:
        self.ground = ground
        self._idle = idle
        self._lives: dict[str, Live] = {}
        self._group: asyncio.TaskGroup | None = None
        self.ready = asyncio.Event()
        """Set once what a former process left is in order."""

    async def run(self) -> None:
        """Until cancelled. First what a former process left is put in order."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            await asyncio.to_thread(self.ground.store.prepare)
            await self._recover()
            with suppress(FreeholdError):  # whatever a former process began, it is not at it any more
                await self.ground.keeper("history.forget", {"by": "agent"})
            self.ready.set()
            for session in await asyncio.to_thread(self.ground.store.waiting):
                if not self.ground.money.is_stopped():
                    self._wake(session)
            await asyncio.Event().wait()

    async def _recover(self) -> None:
        store = self.ground.store
        await asyncio.to_thread(self.ground.approvals.orphan_all)
        for session, turn in await asyncio.to_thread(store.unfinished):
            error = FreeholdError(
                "session.interrupted",
                "Freehold was restarted in the middle of this turn",
                hint="Nothing was sent again; say how to go on",
            )
            ended: Json = {"stop_reason": "interrupted", "error": dict(error.body()), "changes": None, "usage": None}
            pending = await asyncio.to_thread(self.ground.approvals.pending, session)
            status: Status = "needs_you" if pending else "failed"
            told: list[Kept] = [("error", ended["error"]), ("turn.ended", ended)]
            events = await asyncio.to_thread(store.append, session, turn, told, status=status, ended=True)
            self.ground.watchers.events(session, events)
            await self._tell(session)

    # Sessions

    async def open(self, agent: str | None, title: str | None, model: str | None, *, who: str) -> SessionRow:
        await self.ready.wait()
        entry = find_agent(self.ground.manifest, agent or self.ground.manifest.agents.default)
        problem = problem_with(self.ground.home, entry)
        if problem is not None:
            raise FreeholdError(
                "agent.not-installed",
                f"{entry.title} is {problem.partition(':')[0]}",
                hint=f"freehold agents add {entry.name}",
            )
        if model is None or model not in self.ground.manifest.models:
            choose_model(entry, self.ground.manifest)
        row = await asyncio.to_thread(self.ground.store.open, entry.name, title, model, who=who)
        self.ground.watchers.session(row)
        return row

    async def change(self, session: str, *, title: str | None, archived: bool | None, who: str) -> SessionRow:
        await self.get(session)
        row = await asyncio.to_thread(self.ground.store.change, session, title=title, archived=archived, who=who)
        self.ground.watchers.session(row)
        return row

    async def see(self, session: str, seq: int) -> SessionRow:
        """The owner has read up to an event, wherever they did: every watcher is told when that was the last of it."""
        await self.get(session)
        if await asyncio.to_thread(self.ground.store.see, session, seq):
            await self._tell(session)
        return await self.get(session)

    async def get(self, session: str) -> SessionRow:
        await self.ready.wait()
        return await asyncio.to_thread(self.ground.store.get, session)

    async def delete(self, session: str, *, who: str) -> None:
        await self.get(session)
        await self._stop_live(session, "The session was deleted")
        self.ground.money.end_session(session)
        self.ground.forget(session)
        await asyncio.to_thread(self.ground.store.delete, session, who=who)
        self.ground.watchers.gone(session)

    def speaking(self, session: str) -> list[Json]:
        """What its agent is saying and has not finished, whole."""
        live = self._lives.get(session)
        return [] if live is None else live.speaking()

    # Prompts

    async def prompt(self, session: str, prompt: Json, key: str, when: When, *, who: str) -> tuple[int, bool]:
        """The turn's number and whether it waits for another. The same key never makes a second turn."""
        self._refuse_while_stopped()
        row = await self.get(session)
        for path in prompt["files"]:
            inside(path)
        if row.archived:
            raise FreeholdError("session.archived.conflict", "This session is archived", hint="Take it out again first")
        live = self._lives.get(session)
        busy = live is not None and live.turn is not None
        waits = busy or await asyncio.to_thread(self.ground.store.next_turn, session) is not None
        turn, events = await asyncio.to_thread(
            self.ground.store.add_turn, session, key, prompt, first=when == "steer", waits=waits, who=who
        )
        self.ground.watchers.events(session, events)
        await self._tell(session)
        if turn.state != "queued":
            return turn.turn, False
        if when == "steer" and live is not None and busy:
            await live.cancel()
        self._wake(session)
        return turn.turn, waits

    async def cancel(self, session: str, *, queued: bool = True) -> None:
        """Stops the turn under way, and forgets what waits behind it."""
        await self.get(session)
        if queued:
            await self._drop_queued(session)
            await self._tell(session)
        live = self._lives.get(session)
        if live is not None:
            await live.cancel()

    async def choose(self, session: str, name: str, value: str | bool) -> SessionRow:
        """Set an option; its agent is started for that, and it holds for those that follow."""
        row = await self.get(session)
        live = await self._started(session)
        await live.choose(name, value)
        await asyncio.to_thread(self.ground.store.remember, session, chosen={**row.chosen, name: value})
        return await self.get(session)

    async def _started(self, session: str) -> Live:
        """With its agent running, unless that failed."""
        live = self._wake(session)
        try:
            async with asyncio.timeout(TO_START):
                await live.ready.wait()
        except TimeoutError:
            raise FreeholdError(
                "agent.silent", "The agent did not start", hint="freehold agents test tells why"
            ) from None
        return live

    async def fork(self, session: str, *, who: str) -> SessionRow:
        """A second session with the same past."""
        row = await self.get(session)
        live = self._lives.get(session)
        if live is None and row.acp and not self.ground.money.is_stopped():
            # Only its agent can copy all that was said; one that does not come is not waited for in vain.
            with suppress(FreeholdError):
                live = await self._started(session)
        acp = await live.fork() if live is not None and live.turn is None else None
        store = self.ground.store

        def copy() -> SessionRow:
            copied = store.open(row.agent, f"{row.title} (fork)", row.model, who=who, parent=session)
            store.copy_events(session, copied.id)
            store.remember(copied.id, acp=acp, chosen=row.chosen)
            return store.get(copied.id)

        forked = await asyncio.to_thread(copy)
        self.ground.watchers.session(forked)
        return forked

    async def rewind(self, session: str, turn: int, what: What, *, dry_run: bool, who: str) -> Json:
        """Back to before a turn: the files, the conversation, or both."""
        found = await asyncio.to_thread(self.ground.store.turn, session, turn)
        live = self._lives.get(session)
        if live is not None and live.turn is not None and not dry_run:
            raise FreeholdError("session.conflict", "The agent is at work", hint="Cancel the turn first")
        outcome: Json = {"turn": turn, "what": what, "dry_run": dry_run, "files": None, "events": 0}
        if what != "chat":
            if found.entry is None:
                raise FreeholdError(
                    "session.no-history", "History noted no state before this turn", hint="Rewind the chat alone"
                )
            asked: dict[str, Any] = {"entry": found.entry, "dry_run": dry_run, "who": {"by": "owner"}}
            outcome["files"] = await self.ground.keeper("history.restore", asked)
        if what != "files":
            rows = await asyncio.to_thread(
                self.ground.store.timeline.query,
                "SELECT count(*) FROM agents_event WHERE session = ? AND turn >= ?",
                (session, turn),
            )
            outcome["events"] = rows[0][0]
            if not dry_run:
                await self._stop_live(session, "The conversation was taken back")
                events = await asyncio.to_thread(self.ground.store.forget_after, session, turn, who=who)
                self.ground.watchers.events(session, events)
                await self._tell(session)
        return outcome

    # Approvals

    async def answer(self, approval: str, answer: Answer, *, who: str, note: str | None = None) -> Approval:
        """With a note the owner's words follow as the next prompt; to a question that asks for words they are the answer."""
        await self.ready.wait()
        answered = await self.ground.approvals.answer(approval, answer, who=who, note=note)
        await self._tell(answered.session)
        if not answered.live:
            # Its agent is gone, and cannot be told but by a prompt.
            note = belated(answered, note)
        elif answered.asks_for_words:
            note = None
        if note is not None:
            prompt: Json = {"text": note, "files": [], "images": []}
            await self.prompt(answered.session, prompt, f"approval:{approval}", "queue", who=who)
        return answered

    # Ending

    async def stop_all(self, reason: str) -> None:
        """The kill switch: every agent is ended at once, and nothing that waits is sent."""
        fault = AgentFault("agent.stopped", reason, hint="freehold stop --lift lets agents work again")
        for live in list(self._lives.values()):
            live.kill(fault)
        for session in await asyncio.to_thread(self.ground.store.waiting):
            await self._drop_queued(session)
            await self._tell(session)

    async def _stop_live(self, session: str, reason: str) -> None:
        live = self._lives.get(session)
        if live is None:
            return
        await self._drop_queued(session)
        live.kill(AgentFault("agent.stopped", reason))
        live.wake()
        await live.over.wait()

    async def _drop_queued(self, session: str) -> None:
        self.ground.watchers.events(session, await asyncio.to_thread(self.ground.store.drop_queued, session))

    # Running

    def _wake(self, session: str) -> Live:
        self._refuse_while_stopped()
        live = self._lives.get(session)
        if live is None:
            if len(self._lives) >= MAX_LIVE:
                raise FreeholdError(
                    "session.too-many", f"{MAX_LIVE} agents are at work already", hint="Wait for one, or cancel one"
                )
            assert self._group is not None  # `run` comes first
            self._retire_idle()
            live = self._lives[session] = Live(self.ground, session, idle=self._idle)
            self._group.create_task(self._see_through(live))
        live.wake()
        return live

    def _refuse_while_stopped(self) -> None:
        if self.ground.money.is_stopped():
            raise FreeholdError(
                "agent.stopped.conflict", "Everything is stopped", hint="freehold stop --lift lets agents work again"
            )

    def _retire_idle(self) -> None:
        idle = [live for live in self._lives.values() if live.idle_since is not None]
        idle.sort(key=lambda live: live.idle_since or 0.0)
        for live in idle[: max(0, len(idle) - MAX_IDLE + 1)]:
            live.retire()

    async def _see_through(self, live: Live) -> None:
        try:
            await live.run()
        except Exception:
            # One session's fault, even ours, must not end the others; nor is what it did tried again.
            log.exception("a session ended by a fault of Freehold's own", extra={"session": live.session})
            await self._drop_queued(live.session)
        finally:
            self._lives.pop(live.session, None)
            live.ready.set()
            live.over.set()
        waits = await asyncio.to_thread(self.ground.store.next_turn, live.session) is not None
        if waits and not self.ground.money.is_stopped():
            self._wake(live.session)

    async def _tell(self, session: str) -> None:
        self.ground.watchers.session(await asyncio.to_thread(self.ground.store.get, session))
