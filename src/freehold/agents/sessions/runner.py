"""Runs the agent of one session: starts it, sends it the prompts one by one, and stops it when it is idle."""

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress

from freehold.agents.acp.json_rpc import AgentError, Json, Later
from freehold.agents.acp.option_change import enter_asking_mode, set_option
from freehold.agents.acp.options import AgentOptions, ModePolicy
from freehold.agents.acp.program import AgentProgram, run_agent
from freehold.agents.catalogue.definition import AgentDefinition, ModelEndpoint
from freehold.agents.catalogue.registry import (
    check_provider_fits,
    choose_provider,
    find_agent,
    mode_policy,
    split_choice,
)
from freehold.agents.sessions.admission import Admission, AgentPlace
from freehold.agents.sessions.dependencies import SessionDependencies
from freehold.agents.sessions.memory_watch import MemoryWatch
from freehold.agents.sessions.owner_command import OwnerCommand, is_owner_command
from freehold.agents.sessions.permission_gate import PermissionGate
from freehold.agents.sessions.prompt import UnsupportedPromptError, build_blocks, summarise_transcript
from freehold.agents.sessions.real_paths import RealPath, resolve_in_computer
from freehold.agents.sessions.rows import SessionRow, TurnRow
from freehold.agents.sessions.session_log import SessionLog
from freehold.agents.sessions.turn_trace import trace_turn
from freehold.agents.sessions.unfinished_messages import UnfinishedMessages
from freehold.agents.threads import run_blocking
from freehold.errors import FreeholdError

IDLE_TIMEOUT = 600.0
"""Seconds without a prompt after which an agent is stopped. The next prompt starts it again."""

CANCEL_TIMEOUT = 10
"""Seconds after which an agent that does not stop its turn is killed."""

SILENCE_TIMEOUT = 3600.0
"""Seconds without a message, and without a request that waits for the owner, after which an agent is killed."""

WATCH_INTERVAL = 30.0

PROMPT_GRACE = 0.25
"""Seconds after its first prompt in which an agent still counts as starting: it sends its first request then."""


class SessionRunner:
    """Runs in a task of its own. `ready` is set when its agent accepts prompts, `stopped` when the task has ended.

    Call `wake` after a prompt was queued.
    """

    def __init__(
        self,
        dependencies: SessionDependencies,
        session: str,
        admission: Admission,
        memory: MemoryWatch,
        unfinished: UnfinishedMessages,
        *,
        idle: float = IDLE_TIMEOUT,
        on_turn_ended: Callable[[TurnRow], None] = lambda turn: None,
    ) -> None:
        self._on_turn_ended = on_turn_ended
        self._dependencies = dependencies
        self._admission = admission
        self._memory = memory
        self._place: AgentPlace | None = None
        self._store = dependencies.store
        self._idle_timeout = idle
        self.session = session
        self._log = SessionLog(dependencies, session, unfinished)
        self._permissions = PermissionGate(session, self._log, dependencies.approvals, self.kill, self._resolve_paths)
        self._program: AgentProgram | None = None
        self._owner_command: OwnerCommand | None = None
        self._acp_session = ""
        self._options = AgentOptions()
        self._options_changed = False
        self._option_lock = asyncio.Lock()
        self._policy = ModePolicy("")
        self._mode_set = False
        """Whether the agent was put into its mode. From then on it must not leave the modes in which it asks."""
        self._woken = asyncio.Event()
        self._cancelled = asyncio.Event()
        self._kill_reason: AgentError | None = None
        self._preface = ""
        """The transcript so far, for an agent that does not remember it. It is sent with the next prompt."""
        self._resuming = False
        self._retired = False
        self._turns_run = 0
        self.idle_since: float | None = None
        self.in_queue = asyncio.Event()
        """Set when the agent has its place in the queue, or needs none."""
        self.ready = asyncio.Event()
        self.stopped = asyncio.Event()

    @property
    def turn(self) -> int | None:
        """The number of the running turn."""
        return self._log.turn

    # Called by the service

    def wake(self) -> None:
        self._woken.set()

    def retire(self) -> None:
        """Stops the agent if it is idle. The next prompt starts it again."""
        self._retired = True
        self._woken.set()

    async def cancel(self) -> None:
        """Asks the agent to stop its turn. An agent that does not stop is killed; one that waits to start does not."""
        if self._place is not None:
            self._place.leave()
        if self._owner_command is not None:
            self._owner_command.stop()
            return
        if self.turn is None or self._program is None:
            return
        self._cancelled.set()
        self._permissions.cancel_turn()
        await self._dependencies.approvals.withdraw(self.session)
        with suppress(FreeholdError):
            await self._program.cancel(self._acp_session)

    def unfinished_messages(self) -> list[Json]:
        """What the agent has written and not finished."""
        return self._log.transcript.unfinished_messages()

    def kill(self, reason: AgentError) -> None:
        """Ends the agent at once. Its turn ends with this reason."""
        self._kill_reason = self._kill_reason or reason
        if self._place is not None:
            self._place.leave()
        if self._owner_command is not None:
            self._owner_command.stop()
        if self._program is not None:
            self._program.kill()

    async def set_option(self, name: str, value: str | bool) -> None:
        """Sets an option of the running agent. Raises `session.not-running` or `session.no-option`."""
        if self._program is None:
            raise FreeholdError("session.not-running", "The agent is not running", hint="Send it a prompt first")
        async with self._option_lock:
            await set_option(self._program, self._acp_session, self._options, self._policy, name, value)
            self._check_mode()
            await self._append_options()

    async def fork(self) -> str | None:
        """Makes the agent copy its session. Returns the agent's id of the copy; None when it cannot copy."""
        program = self._program
        if program is None or not program.capabilities.fork:
            return None
        with suppress(AgentError):
            answer = await program.fork_session(self._acp_session, [])
            if isinstance(answer.get("sessionId"), str):
                return str(answer["sessionId"])
        return None

    # Life of the agent

    async def run(self) -> None:
        """Until the agent is idle for too long or fails. Then every turn has ended, unless this was cancelled."""
        try:
            row = await run_blocking(self._store.get, self.session)
            await self._dependencies.wait_connected()
            if await self._run_owner_commands(row.agent):
                return
            async with self._admission.admit(self.session, row.agent, self) as place:
                self._place = place
                self.in_queue.set()
                if await place.decided:
                    await self._run_or_start_anew()
                elif self._kill_reason is not None:
                    raise self._kill_reason
        except FreeholdError as error:
            # Before `ready` no prompt was sent. The turn that waits ends with the error.
            waiting = None if self.ready.is_set() or self._is_replaced() else await self._find_next_turn()
            if waiting is not None:
                exit = None if self._program is None else self._program.process.exit
                await self._fail_turn(waiting, self._kill_reason or await self._memory.explain(error, exit))
        finally:
            self.in_queue.set()
            self._program = self._place = None
            self._log.turn = None

    async def _run_or_start_anew(self) -> None:
        try:
            await self._run_with_access()
        except AgentError:
            if self.ready.is_set() or not self._resuming or self._kill_reason is not None:
                raise
            # The agent could not load its stored session: it starts a new one and gets the transcript.
            await run_blocking(self._store.save_agent_state, self.session, acp="")
            await self._run_with_access()

    async def _fail_turn(self, turn: TurnRow, error: FreeholdError) -> None:
        try:
            await self._log.begin_turn(turn, None)
        except FreeholdError as dropped:
            if dropped.code != "turn.dropped.conflict":
                raise
            return
        await self._log.end_turn(turn.turn, "error", error, None)

    async def _run_with_access(self) -> None:
        try:
            await self._run_agent()
        finally:
            # The agent may have stored its tokens anywhere. They no longer work.
            self._dependencies.host.revoke(self.session)
            self._dependencies.models.end_session(self.session)

    async def _run_agent(self) -> None:
        row = await run_blocking(self._store.get, self.session)
        agent = find_agent(self._dependencies.manifest, row.agent)
        endpoint = self._find_endpoint(agent, row.model)
        grant = self._dependencies.host.grant(self.session)
        launch = agent.launch(endpoint, env=grant.environment, secrets=grant.secrets)
        computer = self._dependencies.computer_of(self.session)
        self._permissions.folder = row.place
        async with run_agent(
            computer, launch, self, session=self.session, folder=row.place, on_started=self._keep_program
        ) as program:
            with computer.hold_awake():
                await self._open_session(program, agent)
            self.ready.set()
            while True:
                self._woken.clear()
                turn = await self._find_next_turn()
                if turn is not None and (self._is_replaced() or self._has_yielded()):
                    return
                if turn is not None and is_owner_command(agent.name, turn.prompt["text"]):
                    await self._run_owner_command(turn)
                elif turn is not None:
                    model = None if endpoint is None else endpoint.model
                    with computer.hold_awake(), trace_turn(self.session, turn.turn, agent.name, model):
                        await self._run_turn(program, turn)
                    self._turns_run += 1
                elif not await self._wait_for_work(program):
                    return

    def _is_replaced(self) -> bool:
        """Whether it was stopped and may work again: a prompt that waits now came later, and the next runner gets it."""
        stopped = self._kill_reason is not None and self._kill_reason.code == "agent.stopped"
        return stopped and self._dependencies.models.stopped is None

    def _has_yielded(self) -> bool:
        """Whether it leaves its memory to others that wait. Its next prompt then waits at the end of the queue."""
        return self._turns_run > 0 and self._place is not None and self._place.must_yield()

    def _keep_program(self, program: AgentProgram) -> None:
        """From here on it can be killed. It is, if `kill` was called before it started."""
        self._program = program
        if self._place is not None and self._dependencies.own_computer(self.session) is None:
            self._place.pid = program.process.pid  # measured inside `main`
        if self._kill_reason is not None:
            program.kill()

    def _find_endpoint(self, agent: AgentDefinition, chosen: str | None) -> ModelEndpoint | None:
        """`chosen` is a provider, `provider/model`, or the name of a model at the agent's provider."""
        manifest = self._dependencies.manifest
        named, model = split_choice(chosen, manifest)
        name = named or choose_provider(agent, manifest)
        if name is None:
            return None
        check_provider_fits(agent, manifest, name)
        found = self._dependencies.models.endpoint_for(name, self.session)
        provider = found.provider
        return ModelEndpoint(
            provider.name, provider.kind, found.base_url, found.key, model or provider.model, provider.auth
        )

    async def _find_next_turn(self) -> TurnRow | None:
        return await run_blocking(self._store.turns.find_next, self.session)

    async def _wait_for_work(self, program: AgentProgram) -> bool:
        """False when the agent has been idle for too long, was retired or has ended."""
        waiting = asyncio.ensure_future(self._woken.wait())
        ending = asyncio.ensure_future(program.process.wait())
        self.idle_since = time.monotonic()
        if self._place is not None:
            self._place.rest()
        try:
            await asyncio.wait({waiting, ending}, timeout=self._idle_timeout, return_when=asyncio.FIRST_COMPLETED)
            return waiting.done() and not ending.done() and not self._retired
        finally:
            self.idle_since = None
            waiting.cancel()
            ending.cancel()
            await asyncio.gather(waiting, ending, return_exceptions=True)

    async def _open_session(self, program: AgentProgram, agent: AgentDefinition) -> None:
        """Loads the agent's own session if it can. Otherwise opens a new one that gets the transcript."""
        row = await run_blocking(self._store.get, self.session)
        self._options, self._mode_set = AgentOptions(), False
        capabilities = program.capabilities
        servers = self._dependencies.host.mcp_servers(
            self.session, http=capabilities.mcp_http, expands_variables=agent.expands_variables
        )
        answer: Json | None = None
        if row.acp and (capabilities.resume or capabilities.load):
            self._log.transcript.muted = self._resuming = True
            try:
                answer = await program.load_session(row.acp, servers, resume=capabilities.resume)
                self._acp_session = row.acp
            except AgentError as error:
                if error.code != "agent.refused":
                    raise
            finally:
                self._log.transcript.muted = False
        if answer is None:
            answer = await program.new_session(servers)
            if not isinstance(answer.get("sessionId"), str) or not answer["sessionId"]:
                raise AgentError("agent.nonsense", f"{agent.title} opened a session without an id")
            self._acp_session = answer["sessionId"]
            introduction = await self._dependencies.introduce(self.session, agent.name)
            transcript = summarise_transcript(await run_blocking(self._store.events, self.session, last=True))
            self._preface = "\n\n".join(part for part in (introduction, transcript) if part)
        self._options.read_session(answer)
        await self._set_options(program, agent, row)
        await run_blocking(self._store.save_agent_state, self.session, acp=self._acp_session)

    async def _set_options(self, program: AgentProgram, agent: AgentDefinition, row: SessionRow) -> None:
        """Raises `agent.unasked` when the agent has no mode in which it is known to ask, and the owner allows none."""
        self._policy = mode_policy(self._dependencies.manifest, agent)
        await enter_asking_mode(program, self._acp_session, self._options, self._policy, row.mode)
        for name, value in row.chosen.items():
            with suppress(FreeholdError):
                await set_option(program, self._acp_session, self._options, self._policy, name, value)
        self._mode_set = True
        await self._append_options()
        if not self._is_permitted():
            offered = ", ".join(ascii(one["id"])[:60] for one in self._options.modes[:20]) or "none"
            raise AgentError(
                "agent.unasked",
                f"{agent.title} was not started: it is not known to ask before it acts. Its modes: {offered}",
                hint=f"If one of them asks, set it as mode in [agents.{agent.name}]; this and an agent that never asks "
                "need [security.exceptions.unasked-agent] with a reason",
            )

    # Turns

    async def _run_turn(self, program: AgentProgram, turn: TurnRow) -> None:
        self._cancelled.clear()
        self._permissions.begin_turn()
        before = await self._log.summary.mark("before", turn)
        try:
            blocks = build_blocks(turn.prompt, program.capabilities, self._preface)
        except UnsupportedPromptError as error:
            await self._log.begin_turn(turn, before)
            await self._log.end_turn(turn.turn, "error", error, before)
            return
        await self._log.begin_turn(turn, before)
        watching = asyncio.ensure_future(self._kill_if_stuck(program))
        asyncio.get_running_loop().call_later(PROMPT_GRACE, self._finish_start)
        try:
            answer = await program.prompt(self._acp_session, blocks)
            self._preface = ""
        except AgentError as error:
            failure = self._kill_reason or await self._explain(program, error)
            reason = "cancelled" if self._cancelled.is_set() and self._kill_reason is None else "error"
            await self._log.end_turn(turn.turn, reason, failure, before)
            if failure.code != "agent.refused":
                raise
        else:
            stop_reason = str(answer.get("stopReason") or "end_turn")[:40]
            await self._log.end_turn(turn.turn, stop_reason, None, before, answer.get("usage"))
            self._on_turn_ended(turn)
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _explain(self, program: AgentProgram, error: AgentError) -> FreeholdError:
        return await self._memory.explain(await program.explain(error), program.process.exit)

    def _finish_start(self) -> None:
        if self._place is not None:
            self._place.finish_start()

    async def _run_owner_commands(self, agent: str) -> bool:
        """Runs the owner's commands at the front of the queue. True when nothing else waits: no agent is needed."""
        turn, ran = await self._find_next_turn(), False
        while turn is not None and is_owner_command(agent, turn.prompt["text"]):
            self.in_queue.set()
            await self._run_owner_command(turn)
            turn, ran = await self._find_next_turn(), True
        return ran and turn is None

    async def _run_owner_command(self, turn: TurnRow) -> None:
        before = await self._log.summary.mark("before", turn)
        await self._log.begin_turn(turn, before)
        self._owner_command = OwnerCommand(turn.prompt["text"], self._log.add_update)
        reason, failure = "error", None
        try:
            computer = self._dependencies.computer_of(self.session)
            row = await run_blocking(self._store.get, self.session)
            with computer.hold_awake():
                reason = await self._owner_command.run(computer, row.place)
        except FreeholdError as error:
            failure = error
        finally:
            self._owner_command = None
        await self._log.end_turn(turn.turn, reason, self._kill_reason or failure, before)

    async def _kill_if_stuck(self, program: AgentProgram) -> None:
        """Kills an agent that does not stop when it is cancelled, or that sends nothing for too long."""
        received, since = program.peer.messages_received, time.monotonic()
        while not self._cancelled.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(WATCH_INTERVAL):
                    await self._cancelled.wait()
            if program.peer.messages_received != received or self._permissions.waiting:
                received, since = program.peer.messages_received, time.monotonic()
            elif time.monotonic() - since > SILENCE_TIMEOUT:
                minutes = f"{SILENCE_TIMEOUT / 60:g} minutes"
                self.kill(AgentError("agent.silent", f"The agent sent nothing for {minutes} and was stopped"))
                return
        for _ in range(CANCEL_TIMEOUT):
            await asyncio.sleep(1)
            with suppress(FreeholdError):
                # An agent that had only just received the prompt may have missed the first one.
                await program.cancel(self._acp_session)
        self.kill(AgentError("agent.silent", f"The agent did not stop within {CANCEL_TIMEOUT} s and was killed"))

    # What the agent sends: the listener of `run_agent`

    def updated(self, update: Json) -> None:
        if self.turn is not None:
            self._finish_start()
        self._log.collect_update(update)
        if self._options.apply_update(update):
            self._options_changed = True
            self._check_mode()
        self._permissions.check_update(update)

    async def paused(self) -> None:
        self._log.transcript.flush_tool_calls()
        events = self._log.transcript.pop_events()
        self._log.publish_deltas()
        if self._options_changed:
            self._options_changed = False
            events.append(("options", self._options.as_json(self._policy)))
            await self._save_mode()
        if events:
            await self._log.append_updates(events)
        if any(kind == "info" for kind, _ in events):
            await self._log.publish_session()

    def permission(self, params: Json) -> Later:
        return self._permissions.request(params)

    async def _resolve_paths(self, paths: Sequence[str]) -> list[RealPath | None]:
        try:
            return await resolve_in_computer(self._dependencies.computer_of(self.session), paths)
        except FreeholdError:
            return [None] * len(paths)

    def _is_permitted(self) -> bool:
        return self._policy.unasked_allowed or self._options.asks(self._policy)

    def _check_mode(self) -> None:
        """Ends an agent that has left the modes in which it is known to ask."""
        if self._mode_set and not self._is_permitted():
            self.kill(
                AgentError(
                    "agent.unasked-mode",
                    f"The agent was stopped: it changed to the mode {self._options.mode!a:.60}, in which it is not known "
                    "to ask before it acts",
                    hint="Send the next prompt: it starts again in a mode that asks. To let it act unasked, grant "
                    "[security.exceptions.unasked-agent] in freehold.toml",
                )
            )

    async def _append_options(self) -> None:
        await self._log.append(self.turn, [("options", self._options.as_json(self._policy))])
        await self._save_mode()

    async def _save_mode(self) -> None:
        asks = self._options.asks(self._policy)
        if self._mode_set and await run_blocking(self._store.save_mode, self.session, self._options.mode, asks=asks):
            await self._log.publish_session()
