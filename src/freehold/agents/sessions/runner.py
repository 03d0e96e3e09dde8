"""One session whose agent runs: joined to where it was, given its prompts one by one, and stopped when it is idle."""

import asyncio
import time
from contextlib import suppress
from functools import partial
from typing import Any

from freehold.agents.acp import Agent, running_agent
from freehold.agents.approvals import Question, question_of
from freehold.agents.board import Board, Kept, Tool
from freehold.agents.commanding import OwnCommand, is_own_command
from freehold.agents.ground import Ground
from freehold.agents.options import Options, choose, is_unasked, make_it_ask
from freehold.agents.prompting import NotOffered, blocks_of, retell
from freehold.agents.reckoning import Reckoning
from freehold.agents.registry import Access, Entry, choose_model, find_agent
from freehold.agents.rpc import AgentFault, Json, Later
from freehold.agents.store import Status, TurnRow
from freehold.errors import FreeholdError

IDLE = 600.0
"""Seconds without a prompt after which an agent is stopped; the next prompt brings it back."""

TO_CANCEL = 10
SILENCE = 3600.0
"""Seconds without a word, and without a question to the owner, after which an agent is taken to hang."""

_ANSWERS = {"once": "allow_once", "session": "allow_once", "always": "allow_once", "reject": "reject_once"}


class Live:
    """Runs in a task of its own. `wake` after a prompt was queued; `ready` when it takes prompts; `over` at its end."""

    def __init__(self, ground: Ground, session: str, *, idle: float = IDLE) -> None:
        self._ground = ground
        self._idle = idle
        self._reckoning = Reckoning(ground, session)
        self.session = session
        self.turn: int | None = None
        self._agent: Agent | None = None
        self._own: OwnCommand | None = None
        self._acp = ""
        self._board = Board()
        self._options = Options()
        self._asks = True
        self._woken = asyncio.Event()
        self._cancelled = asyncio.Event()
        self._blame: AgentFault | None = None
        self._approved: dict[str, str | None] = {}
        self._preface = ""
        self._resuming = False
        self._asking = 0
        self._choosing = asyncio.Lock()
        self.idle_since: float | None = None
        self._retired = False
        self.ready = asyncio.Event()
        self.over = asyncio.Event()

    # What others may do

    def wake(self) -> None:
        self._woken.set()

    def retire(self) -> None:
        """Let its agent go if it has nothing to do; the next prompt brings it back."""
        self._retired = True
        self._woken.set()

    async def cancel(self) -> None:
        """Ask the agent to stop its turn; one that does not is ended."""
        if self._own is not None:
            self._own.stop()
            return
        if self.turn is None or self._agent is None:
            return
        self._cancelled.set()
        await self._ground.approvals.withdraw(self.session)
        with suppress(FreeholdError):
            await self._agent.cancel(self._acp)

    def speaking(self) -> list[Json]:
        """What the agent is saying and has not finished, whole."""
        return self._board.speaking()

    def kill(self, fault: AgentFault) -> None:
        """End the agent at once; its turn ends with this reason."""
        self._blame = self._blame or fault
        if self._own is not None:
            self._own.stop()
        if self._agent is not None:
            self._agent.kill()

    async def choose(self, name: str, value: str | bool) -> None:
        """Set an option of the running agent, and tell."""
        if self._agent is None:
            raise FreeholdError("session.not-running", "The agent is not running", hint="Send it a prompt first")
        async with self._choosing:
            await choose(self._agent, self._acp, self._options, name, value)
            await self._tell_options()

    async def fork(self) -> str | None:
        """A copy of the conversation in the agent's own keeping; None when it cannot make one."""
        agent = self._agent
        if agent is None or not agent.capabilities.fork:
            return None
        with suppress(AgentFault):
            answer = await agent.fork_session(self._acp, [])
            if isinstance(answer.get("sessionId"), str):
                return str(answer["sessionId"])
        return None

    # Its life

    async def run(self) -> None:
        """Until it is idle or its agent fails. Every turn that began has ended then, unless we are cancelled."""
        try:
            if await self._obeyed():
                return
            try:
                await self._work()
            except AgentFault:
                if self.ready.is_set() or not self._resuming or self._blame is not None:
                    raise
                # It could not go on with what it kept of the session: it begins anew, and is told what was said.
                await self._ground.on_disk(self._ground.store.remember, self.session, acp="")
                await self._work()
        except FreeholdError as error:
            # Before it was ready nothing was sent: the prompt that waits for this agent is told why it cannot be.
            waiting = None if self.ready.is_set() else await self._next()
            if waiting is not None:
                try:
                    await self._begin(waiting, None)
                except FreeholdError as dropped:
                    if dropped.code != "turn.dropped.conflict":
                        raise
                    return
                await self._end(waiting.turn, "error", self._blame or error, None, None)
        finally:
            self._agent = None
            self.turn = None

    async def _work(self) -> None:
        try:
            await self._run_agent()
        finally:
            # Wherever it has put what it was given, and whoever has found it there: it opens nothing any more.
            self._ground.forget(self.session)
            self._ground.money.end_session(self.session)

    async def _run_agent(self) -> None:
        row = await self._ground.on_disk(self._ground.store.get, self.session)
        entry = find_agent(self._ground.manifest, row.agent)
        access = self._access(entry, row.model)
        async with running_agent(
            self._ground.computer(),
            entry,
            access,
            self,
            session=self.session,
            given=self._ground.environment(self.session),
            born=self._take_hold,
        ) as agent:
            await self._join(agent, entry)
            self.ready.set()
            while True:
                self._woken.clear()
                turn = await self._next()
                if turn is not None and is_own_command(entry.name, turn.prompt["text"]):
                    await self._obey(turn)
                elif turn is not None:
                    await self._take_turn(agent, turn)
                elif not await self._more():
                    return

    def _take_hold(self, agent: Agent) -> None:
        """Of one that has hardly begun: it can be killed from here on, and is if it should never have been started."""
        self._agent = agent
        if self._blame is not None:
            agent.kill()

    def _access(self, entry: Entry, chosen: str | None) -> Access | None:
        """A session's model is a name under [models], or what the provider calls one of its own."""
        models = self._ground.manifest.models
        provider = chosen if chosen in models else choose_model(entry, self._ground.manifest)
        if provider is None:
            return None
        return self._ground.money.access(provider, self.session, None if chosen in models else chosen)

    async def _next(self) -> TurnRow | None:
        return await self._ground.on_disk(self._ground.store.next_turn, self.session)

    async def _more(self) -> bool:
        """Whether there is something to do again before it has been idle for too long."""
        assert self._agent is not None
        waiting = asyncio.ensure_future(self._woken.wait())
        ending = asyncio.ensure_future(self._agent.process.wait())
        self.idle_since = time.monotonic()
        try:
            await asyncio.wait({waiting, ending}, timeout=self._idle, return_when=asyncio.FIRST_COMPLETED)
            return waiting.done() and not ending.done() and not self._retired
        finally:
            self.idle_since = None
            waiting.cancel()
            ending.cancel()
            await asyncio.gather(waiting, ending, return_exceptions=True)

    async def _join(self, agent: Agent, entry: Entry) -> None:
        """The agent's own session: taken up again where it can be, else new and told what was said."""
        row = await self._ground.on_disk(self._ground.store.get, self.session)
        servers = self._ground.servers(self.session, agent.capabilities.mcp_http, entry.fills_in)
        answer: Json | None = None
        if row.acp and (agent.capabilities.resume or agent.capabilities.load):
            self._board.muted = self._resuming = True
            try:
                answer = await agent.load_session(row.acp, servers, resume=agent.capabilities.resume)
                self._acp = row.acp
            except AgentFault as fault:
                if fault.code != "agent.refused":
                    raise
            finally:
                self._board.muted = False
        if answer is None:
            answer = await agent.new_session(servers)
            if not isinstance(answer.get("sessionId"), str) or not answer["sessionId"]:
                raise AgentFault("agent.nonsense", f"{entry.title} opened a session without a name")
            self._acp = answer["sessionId"]
            self._preface = retell(await self._ground.on_disk(self._ground.store.events, self.session, last=True))
        self._options.read_session(answer)
        self._asks = await make_it_ask(agent, entry, self._acp, self._options)
        for name, value in row.chosen.items():
            with suppress(FreeholdError):
                await choose(agent, self._acp, self._options, name, value)
        await self._ground.on_disk(self._ground.store.remember, self.session, acp=self._acp)
        await self._tell_options()

    # A turn

    async def _take_turn(self, agent: Agent, turn: TurnRow) -> None:
        self._cancelled.clear()
        self._approved.clear()
        before = await self._reckoning.mark("before", turn)
        try:
            blocks = blocks_of(turn.prompt, agent.capabilities, self._preface)
        except NotOffered as error:
            await self._begin(turn, before)
            await self._end(turn.turn, "error", error, before, None)
            return
        await self._begin(turn, before)
        watching = asyncio.ensure_future(self._watch(agent))
        try:
            answer = await agent.prompt(self._acp, blocks)
            self._preface = ""
        except AgentFault as fault:
            told = self._blame or await agent.explain(fault)
            stopped = "cancelled" if self._cancelled.is_set() and self._blame is None else "error"
            await self._end(turn.turn, stopped, told, before, None)
            if told.code != "agent.refused":
                raise
        else:
            reason = answer.get("stopReason")
            await self._end(turn.turn, str(reason)[:40] if reason else "end_turn", None, before, answer.get("usage"))
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _obeyed(self) -> bool:
        """Runs the owner's own commands that come first; True when there was nothing else to do: no agent need start."""
        row = await self._ground.on_disk(self._ground.store.get, self.session)
        turn, ran = await self._next(), False
        while turn is not None and is_own_command(row.agent, turn.prompt["text"]):
            await self._obey(turn)
            turn, ran = await self._next(), True
        return ran and turn is None

    async def _obey(self, turn: TurnRow) -> None:
        before = await self._reckoning.mark("before", turn)
        await self._begin(turn, before)
        self._own = OwnCommand(turn.prompt["text"], self._heard)
        reason, failed = "error", None
        try:
            reason = await self._own.run(self._ground.computer())
        except FreeholdError as error:
            failed = error
        finally:
            self._own = None
        await self._end(turn.turn, reason, self._blame or failed, before, None)

    def _heard(self, update: Json) -> None:
        self._board.take(update)
        self._pass_on()

    async def _begin(self, turn: TurnRow, entry: int | None) -> None:
        row = await self._ground.on_disk(self._ground.store.get, self.session)
        self._ground.money.set_turn(self.session, str(turn.turn))
        events = await self._ground.on_disk(
            self._ground.store.begin_turn, self.session, turn, entry, who=f"agent:{row.agent}"
        )
        self.turn = turn.turn
        self._ground.watchers.events(self.session, events)
        await self._tell_session()

    async def _end(self, turn: int, reason: str, error: FreeholdError | None, before: int | None, said: object) -> None:
        self._board.finish()
        events = self._board.take_events()
        self._pass_on()
        await self._ground.approvals.withdraw(self.session)
        changes = await self._reckoning.changes(turn, before)
        usage = await self._reckoning.usage(turn, said)
        ended: Json = {"stop_reason": reason, "changes": changes, "usage": usage}
        if error is None or error.code == "agent.refused":
            # What an agent makes of it is anything between its very words and "internal error".
            blocked = self._ground.money.blocked(self.session)
            if blocked is not None and (error is not None or blocked.code != "models.unreachable"):
                error = blocked  # a provider that was away for a moment stopped nobody who ended well
        if error is not None:
            events.append(("error", dict(error.body())))
            ended["error"] = dict(error.body())
        status: Status = "failed" if error is not None and reason != "cancelled" else "idle"
        if await self._ground.on_disk(self._ground.approvals.pending, self.session):
            status = "needs_you"
        cost = usage["cost"] if isinstance(usage["cost"], float) else None
        self._ground.money.set_turn(self.session, None)
        await self._keep(turn, [*events, ("turn.ended", ended)], status=status, cost=cost, ended=True)
        self.turn = None
        await self._tell_session()

    async def _watch(self, agent: Agent) -> None:
        """Ends an agent that does not stop when asked, or that says nothing for ever."""
        heard, since = agent.peer.heard, time.monotonic()
        while not self._cancelled.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(30):
                    await self._cancelled.wait()
            if agent.peer.heard != heard or self._asking:
                heard, since = agent.peer.heard, time.monotonic()
            elif time.monotonic() - since > SILENCE:
                self.kill(AgentFault("agent.silent", f"The agent has said nothing for {SILENCE / 60:g} minutes"))
                return
        for _ in range(TO_CANCEL):
            await asyncio.sleep(1)
            with suppress(FreeholdError):
                # One that had hardly begun may not have known yet what to stop.
                await agent.cancel(self._acp)
        self.kill(AgentFault("agent.silent", f"The agent did not stop within {TO_CANCEL} s and was ended"))

    # What the agent says (the listener of `running_agent`)

    def updated(self, update: Json) -> None:
        self._board.take(update)
        if self._options.update(update):
            self._options_changed = True
            if self._options.mode is not None and is_unasked(self._options.mode):
                self.kill(
                    AgentFault(
                        "agent.unasked-mode",
                        f"The agent put itself into the mode {self._options.mode!a:.60}, in which it does not ask",
                    )
                )
        name = update.get("toolCallId")
        if isinstance(name, str) and name[:200] in self._approved:
            self._check_frozen(name[:200])

    _options_changed = False

    async def paused(self) -> None:
        self._board.pause()
        events = self._board.take_events()
        self._pass_on()
        if self._options_changed:
            self._options_changed = False
            events.append(("options", self._options.as_json(asks=self._asks)))
        if events:
            await self._keep(self.turn, events)
        if any(kind == "info" for kind, _ in events):
            await self._tell_session()

    def permission(self, params: Json) -> Later:
        """Joined here and now to what was told of the call: what is told after it changes the question."""
        self._board.finish()
        call = params.get("toolCall")
        tool = self._board.join(call) if isinstance(call, dict) else None
        return partial(self._decide, tool, None if tool is None else question_of(tool), params.get("options"))

    async def _decide(self, tool: Tool | None, question: Question | None, options: object) -> Json:
        """The owner's answer to a question of the agent's: for exactly what was shown, and once."""
        if tool is None or question is None or self.turn is None or self._cancelled.is_set():
            return {"outcome": {"outcome": "cancelled"}}
        self._asking += 1
        try:
            while True:
                reply = await self._ground.approvals.ask(self.session, self.turn, question)
                if reply is None:
                    return {"outcome": {"outcome": "cancelled"}}
                now = question_of(tool)
                if now.digest == question.digest:
                    break
                question = now
        finally:
            self._asking -= 1
        option = _pick(options, _ANSWERS[reply.answer])
        if option is None:
            return {"outcome": {"outcome": "cancelled"}}
        if reply.answer != "reject":
            self._approved[tool.id] = question.details.get("command")
        await self._tell_session()
        return {"outcome": {"outcome": "selected", "optionId": option}}

    def _check_frozen(self, name: str) -> None:
        allowed = self._approved[name]
        found = question_of(self._board.tools[name]).details.get("command") if name in self._board.tools else allowed
        if allowed is not None and found is not None and found != allowed:
            self.kill(
                AgentFault(
                    "approval.changed",
                    f"The agent was allowed {allowed[:300]!r} and then made it {str(found)[:300]!r}; it was ended",
                )
            )

    # Telling

    def _pass_on(self) -> None:
        for delta in self._board.take_deltas():
            self._ground.watchers.delta(self.session, delta)

    async def _keep(self, turn: int | None, events: list[Kept], **more: Any) -> None:
        kept = await self._ground.on_disk(self._ground.store.append, self.session, turn, events, **more)
        self._ground.watchers.events(self.session, kept)

    async def _tell_options(self) -> None:
        await self._keep(self.turn, [("options", self._options.as_json(asks=self._asks))])

    async def _tell_session(self) -> None:
        self._ground.watchers.session(await self._ground.on_disk(self._ground.store.get, self.session))


def _pick(options: object, wanted: str) -> str | None:
    """The agent's own name for an answer. A lasting yes is never given: the rules that last are ours."""
    for one in options if isinstance(options, list) else []:
        if isinstance(one, dict) and one.get("kind") == wanted and isinstance(one.get("optionId"), str):
            return str(one["optionId"])
    return None
