"""The service of sessions: opens, prompts, answers, rewinds and deletes them, and runs their agents."""

import asyncio
import logging
import os
from contextlib import suppress
from functools import partial
from typing import Any, Literal

from freehold.agents.acp.json_rpc import AgentError, Json
from freehold.agents.catalogue.installation import find_problem, install_hint
from freehold.agents.catalogue.registry import check_provider_fits, choose_provider, find_agent, split_choice
from freehold.agents.sessions.admission import Admission
from freehold.agents.sessions.agent_memory import AgentMemory
from freehold.agents.sessions.answered_turns import ANSWER_KEY
from freehold.agents.sessions.approval_store import AnswerDelivery, ApprovalRow
from freehold.agents.sessions.dependencies import SessionDependencies
from freehold.agents.sessions.interrupted_turns import InterruptedTurns
from freehold.agents.sessions.memory_watch import MemoryWatch
from freehold.agents.sessions.prompt import answer_prompt, resolve_folder, resolve_path
from freehold.agents.sessions.queue_publisher import QueuePublisher, add_place
from freehold.agents.sessions.reach import Answer
from freehold.agents.sessions.rows import SessionRow, Status, TurnRow
from freehold.agents.sessions.runner import IDLE_TIMEOUT, SessionRunner
from freehold.agents.sessions.search_index import fill_search_index
from freehold.agents.sessions.session_title import is_begin
from freehold.agents.sessions.unfinished_messages import UnfinishedMessages
from freehold.agents.threads import run_blocking
from freehold.errors import FreeholdError
from freehold.history.calls import ForgetAuthors, PlanRestore, RequestAuthor, RestoreEntry
from freehold.observe.agent_spans import prompt_key
from freehold.observe.tracing import keep_parent
from freehold.strict_json import encode

START_TIMEOUT = 90.0

STARTS_PER_CORE = 2
"""Agents that start at the same time, for each processor core: a start waits for half of its time."""

QUEUE_TIMEOUT = 1.0

RETIRE_TIMEOUT = 10.0
"""Seconds for which a change of the model waits for the idle agent to end."""

PromptTiming = Literal["now", "queue", "steer"]
RewindScope = Literal["files", "chat", "both"]

log = logging.getLogger("freehold.agents")


class SessionService:
    """`run` must run as long as the service is used. The other methods can be called from any coroutine of its loop."""

    def __init__(self, dependencies: SessionDependencies, *, idle: float = IDLE_TIMEOUT) -> None:
        self.dependencies = dependencies
        self._store = dependencies.store
        self._watchers = dependencies.watchers
        self._idle = idle
        self._runners: dict[str, SessionRunner] = {}
        self._queue_moved = asyncio.Event()
        limits = dependencies.manifest.computer.limits
        self.admission = Admission(
            limits.memory,
            AgentMemory(self._declare_memory),
            starts=STARTS_PER_CORE * max(1, min(os.cpu_count() or 1, round(limits.cpus))),
            on_moved=self._queue_moved.set,
        )
        self.memory = MemoryWatch(dependencies, self.admission)
        self._unfinished = UnfinishedMessages(dependencies.store.unfinished)
        self._interrupted = InterruptedTurns(dependencies, self._publish_session)
        self._arriving = 0
        """Prompts that are being stored and whose agents are not in the queue yet."""
        self._searching = asyncio.Lock()
        self._group: asyncio.TaskGroup | None = None
        self.ready = asyncio.Event()
        """Set when the turns of a process that crashed have been ended."""

    async def run(self) -> None:
        """Until cancelled. First ends the turns that a crash interrupted, then sends prompts that are queued."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            await run_blocking(self._store.prepare)
            await self._interrupted.recover()
            with suppress(FreeholdError):  # no agent of the former process works any more
                await self.dependencies.keeper.call(ForgetAuthors(by="agent"))
            self.ready.set()
            group.create_task(fill_search_index(self._store.timeline))
            group.create_task(QueuePublisher(self.dependencies, self.admission, self._queue_moved).run())
            group.create_task(self.memory.run())
            group.create_task(self._unfinished.run())
            for session in await run_blocking(self._store.turns.list_queued_sessions):
                if not self._is_stopped():
                    await self._wake_in_order(session)
            await asyncio.Event().wait()

    async def _wake_in_order(self, session: str) -> None:
        """Returns when the session has its place in the queue, so that the next one comes after it."""
        runner = self._wake(session)
        with suppress(TimeoutError):  # the computer does not answer: the others need not wait for that too
            async with asyncio.timeout(QUEUE_TIMEOUT):
                await runner.in_queue.wait()

    # Sessions

    async def open(
        self,
        agent: str | None,
        title: str | None,
        model: str | None,
        *,
        who: str,
        parent: str | None = None,
        id: str | None = None,
        of_run: bool = False,
        folder: str = "",
    ) -> SessionRow:
        """`id` is one that was never used.

        Raises `agent.not-found`, `agent.not-installed`, `agent.no-model`, `session.bad-folder` or `orchestrator.unavailable`.

        The agent of a session `of_run` works in the computer of its run and nowhere else. `folder` is below the workspace.
        """
        await self.ready.wait()
        if not of_run:
            self.dependencies.refuse_new_work()
        name = self._check_choice(agent, model)
        place = resolve_folder(folder)
        row = await run_blocking(
            self._store.create, name, title, model, who=who, parent=parent, id=id, of_run=of_run, folder=place
        )
        self._watchers.publish_session(row)
        return row

    def _check_choice(self, agent: str | None, model: str | None) -> str:
        """The name of the agent. Raises when it cannot start, or has no model that it may use."""
        manifest = self.dependencies.manifest
        definition = find_agent(manifest, agent or manifest.agents.default)
        problem = find_problem(self.dependencies.home, definition)
        if problem is not None:
            hint = install_hint(definition)
            raise FreeholdError(
                "agent.not-installed", f"{definition.title}: {problem.removesuffix(f': {hint}')}", hint=hint
            )
        provider, _ = split_choice(model, manifest)
        if provider is None:
            choose_provider(definition, manifest)
        else:
            check_provider_fits(definition, manifest, provider)
        return definition.name

    async def choose_model(self, session: str, agent: str | None, model: str | None, *, who: str) -> SessionRow:
        """Another model from the next prompt on (None: the default). Another agent only before the first prompt.

        The agent ends, and starts with the new model. Raises `session.conflict` while it works.
        """
        row = await self.get(session)
        runner = self._runners.get(session)
        if runner is not None and runner.turn is not None:
            raise FreeholdError("session.conflict", "The agent is working", hint="Wait until its turn ends, or stop it")
        if agent is not None and agent != row.agent and row.seq > 0:
            raise FreeholdError(
                "session.conflict",
                f"This session has begun with the agent {row.agent}",
                hint="Start a new session with the other agent",
            )
        name = self._check_choice(agent or row.agent, model)
        changed = await run_blocking(self._store.save_choice, session, name, model, who=who)
        if runner is not None:
            runner.retire()
            with suppress(TimeoutError):
                async with asyncio.timeout(RETIRE_TIMEOUT):
                    await runner.stopped.wait()
        self._watchers.publish_session(changed)
        return changed

    async def get(self, session: str) -> SessionRow:
        """Raises `session.not-found`."""
        await self.ready.wait()
        return add_place(await run_blocking(self._store.get, session), self.admission.find_waiting(session))

    async def search(self, **given: Any) -> list[SessionRow]:
        """As `SessionStore.search`."""
        await self.ready.wait()
        if given.get("query"):
            # One at a time, and not in the threads in which sessions are stored: it may take seconds.
            async with self._searching:
                rows = await asyncio.to_thread(self._store.search, **given)
        else:
            rows = await run_blocking(self._store.search, **given)
        waiting = self.admission.describe_waiting()
        return [add_place(row, waiting.get(row.id)) for row in rows]

    async def update(self, session: str, *, title: str | None, archived: bool | None, who: str) -> SessionRow:
        await self.get(session)
        row = await run_blocking(self._store.update, session, title=title, archived=archived, who=who)
        self._watchers.publish_session(row)
        return row

    async def mark_seen(self, session: str, seq: int) -> SessionRow:
        """The owner has read up to this event. All clients learn it when the session is no longer unread."""
        await self.get(session)
        if await run_blocking(self._store.mark_seen, session, seq):
            await self._publish_session(session)
        return await self.get(session)

    async def delete(self, session: str, *, unused: bool = False, who: str) -> None:
        """As `SessionStore.delete`. Its agent ends."""
        await self.get(session)
        if unused:  # or else its agent would be stopped for nothing
            await run_blocking(self._store.refuse_used, session)
        await self._stop_runner(session, "The session was deleted")
        self.dependencies.models.end_session(session)
        self.dependencies.host.revoke(session)
        await run_blocking(self._store.delete, session, unused=unused, who=who)
        self.dependencies.host.forget(session)
        await self.dependencies.on_deleted(session)
        self._watchers.publish_deleted(session)

    def unfinished_messages(self, session: str) -> list[Json]:
        """What its agent has written and not finished."""
        runner = self._runners.get(session)
        return [] if runner is None else runner.unfinished_messages()

    async def fork(self, session: str, *, who: str) -> SessionRow:
        """A copy of the session."""
        row = await self.get(session)
        self.dependencies.refuse_new_work()
        runner = self._runners.get(session)
        if runner is None and row.acp and not self._is_stopped():
            # Only the agent can copy all that it remembers. If it does not start, the copy gets the transcript.
            with suppress(FreeholdError):
                runner = await self._start_runner(session)
        acp = await runner.fork() if runner is not None and runner.turn is None else None

        def copy() -> SessionRow:
            title = f"{row.title} (fork)"
            copied = self._store.create(row.agent, title, row.model, who=who, parent=session, folder=row.folder)
            self._store.copy_events(session, copied.id)
            self._store.save_agent_state(copied.id, acp=acp, chosen=row.chosen)
            return self._store.get(copied.id)

        forked = await run_blocking(copy)
        self._watchers.publish_session(forked)
        return forked

    async def rewind(
        self,
        session: str,
        turn: int,
        what: RewindScope,
        *,
        dry_run: bool,
        who: str,
        author: RequestAuthor,
        restore_id: str | None = None,
    ) -> Json:
        """Back to before a turn: the files, the transcript, or both. History records `author` for the files.

        The files come first: when their restore is cancelled, the transcript stays as well.
        """
        found = await run_blocking(self._store.turns.get, session, turn)
        runner = self._runners.get(session)
        if runner is not None and runner.turn is not None and not dry_run:
            raise FreeholdError("session.conflict", "The agent is working", hint="Cancel the turn first")
        outcome: Json = {"turn": turn, "what": what, "dry_run": dry_run, "files": None, "events": 0}
        if what != "chat":
            if found.entry is None:
                raise FreeholdError(
                    "session.no-history",
                    f"History has no state of the files before turn {turn}",
                    hint='Rewind the chat only: "what": "chat"',
                )
            change = RestoreEntry(found.entry, who=author, restore_id=restore_id)
            call = PlanRestore(found.entry) if dry_run else change
            outcome["files"] = encode(await self.dependencies.keeper.call(call))
        if what != "files":
            outcome["events"] = await run_blocking(self._store.count_events_from, session, turn)
            if not dry_run:
                await self._stop_runner(session, "The session was rewound")
                events = await run_blocking(self._store.rewind, session, turn, who=who)
                self._watchers.publish_events(session, events)
                await self._publish_session(session)
        return outcome

    def _declare_memory(self, agent: str) -> int:
        try:
            return find_agent(self.dependencies.manifest, agent).memory
        except FreeholdError:  # removed from the manifest: its start fails, and uses nothing
            return 0

    # Prompts

    async def prompt(self, session: str, prompt: Json, key: str, when: PromptTiming, *, who: str) -> tuple[int, bool]:
        """Returns the number of the turn, and whether it waits. The same key never makes a second turn.

        It waits for the turn before, or until its agent may start. Raises `orchestrator.unavailable`.
        """
        # A run was accepted when it began, and a repetition when it came first.
        is_accepted = self.dependencies.own_computer(session) is not None
        if not is_accepted and not await run_blocking(self._store.turns.has, session, key):
            self.dependencies.refuse_new_work()
        waits, status = await self._place_prompt(session)
        for path in prompt["files"]:
            resolve_path(path)
        runner = self._runners.get(session)
        running = None if runner is None else runner.turn
        self._arriving += 1
        try:
            turn, events = await run_blocking(
                self._store.turns.add, session, key, prompt, first=when == "steer", waits=waits, status=status, who=who
            )
        finally:
            self._arriving -= 1
        self._watchers.publish_events(session, events)
        await self._publish_session(session)
        if turn.state != "queued":
            return turn.turn, False
        keep_parent(prompt_key(session, turn.turn))
        if when == "steer" and runner is not None and running is not None:
            await runner.cancel()
        self._wake(session)
        return turn.turn, waits

    def _finish_turn(self, session: str, turn: TurnRow) -> None:
        if turn.turn == 1 and self._group is not None:
            self._group.create_task(self._write_title(session, turn.prompt["text"]))

    async def _write_title(self, session: str, prompt: str) -> None:
        """Only while the title is still the begin of the prompt: what the owner or the agent chose stays."""
        with suppress(FreeholdError):  # the session was deleted meanwhile
            row = await run_blocking(self._store.get, session)
            if row.named or not is_begin(row.title, prompt):
                return
            title = await self.dependencies.write_title(row, prompt)
            if title is not None and await run_blocking(self._store.replace_title, session, row.title, title):
                await self._publish_session(session)

    async def _place_prompt(self, session: str) -> tuple[bool, Status | None]:
        """Whether a new prompt has to wait, and the status of its session then. Raises when it takes no prompt."""
        self._refuse_while_stopped()
        row = await self.get(session)
        self.dependencies.refuse_ended_run(session)
        if row.archived:
            raise FreeholdError("session.archived.conflict", "This session is archived", hint="Unarchive it first")
        runner = self._runners.get(session)
        busy = runner is not None and runner.turn is not None
        follows = busy or await run_blocking(self._store.turns.find_next, session) is not None
        waits = follows or (runner is None and self.admission.would_wait(row.agent, self._arriving))
        return waits, None if follows else "queued" if waits else "working"

    async def cancel(self, session: str) -> None:
        """Stops the running turn and drops the prompts that wait."""
        await self.get(session)
        await self._drop_queued(session)
        runner = self._runners.get(session)
        if runner is not None:
            await runner.cancel()
        await self._publish_session(session)

    async def set_option(self, session: str, name: str, value: str | bool) -> SessionRow:
        """Starts the agent if needed. The option is set again whenever the agent starts."""
        row = await self.get(session)
        runner = await self._start_runner(session)
        await runner.set_option(name, value)
        await run_blocking(self._store.save_agent_state, session, chosen={**row.chosen, name: value})
        return await self.get(session)

    async def answer(
        self, approval: str, answer: Answer, *, who: str, note: str | None = None, digest: str | None = None
    ) -> ApprovalRow:
        """Answers an approval. The note is sent as the next prompt; for a question it is the answer itself.

        With a `digest` the answer counts only for the call that has it.
        """
        await self.ready.wait()
        approvals = self.dependencies.approvals
        asked = await run_blocking(approvals.store.get, approval)
        delivery = None
        # When the agent that asked has ended, only a prompt can deliver the answer.
        if not asked.live or (note is not None and not asked.is_question):
            waits, status = await self._place_prompt(asked.session)
            delivery = AnswerDelivery(f"{ANSWER_KEY}{approval}", partial(answer_prompt, note=note), waits, status)
        answered = await approvals.answer(approval, answer, who=who, note=note, digest=digest, delivery=delivery)
        await self._publish_session(answered.session)
        if delivery is not None:
            turn = await run_blocking(self._store.turns.find, answered.session, delivery.key)
            keep_parent(prompt_key(answered.session, turn.turn))
            self._wake(answered.session)
        return answered

    # Ending

    async def stop_all(self, reason: str) -> None:
        """The kill switch: kills every agent and drops every prompt that waits."""
        error = AgentError("agent.stopped", reason, hint="freehold stop --lift lets agents work again")
        for runner in list(self._runners.values()):
            runner.kill(error)
        for session in await run_blocking(self._store.turns.list_queued_sessions):
            await self._drop_queued(session)
            await self._publish_session(session)

    async def wait_ended(self, seconds: float) -> None:
        """Waits until no agent runs any more, or for so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for runner in list(self._runners.values()):
                    await runner.stopped.wait()

    async def stop(self, session: str, reason: str) -> None:
        """Ends the agent of one session, with the prompts and questions that wait. Returns when it has ended."""
        await self._stop_runner(session, reason)
        await self._drop_queued(session)
        await self.dependencies.approvals.withdraw(session, orphaned=True)

    async def release(self, session: str, reason: str) -> bool:
        """Ends the agent of a session that waits for the owner, so that it costs nothing meanwhile. False if none waits.

        What it asks stays. The answer is sent as the next prompt, which starts it again.
        """
        if not await run_blocking(self.dependencies.approvals.store.mark_orphaned, session):
            return False
        await self.end_agent(session, reason)
        return True

    async def end_agent(self, session: str, reason: str) -> None:
        """Ends the agent of one session with its turn. Prompts that wait are sent to a new one."""
        runner = self._runners.get(session)
        if runner is not None:
            runner.kill(AgentError("agent.stopped", reason))
            runner.wake()
            await runner.stopped.wait()

    async def drop_prompt(self, session: str, key: str) -> None:
        """If it waits. Idempotent."""
        self._watchers.publish_events(session, await run_blocking(self._store.turns.drop_queued, session, key))
        await self._publish_session(session)

    async def _stop_runner(self, session: str, reason: str) -> None:
        if session in self._runners:
            await self._drop_queued(session)
            await self.end_agent(session, reason)

    async def _drop_queued(self, session: str) -> None:
        self._watchers.publish_events(session, await run_blocking(self._store.turns.drop_queued, session))

    # Running

    async def _start_runner(self, session: str) -> SessionRunner:
        """Waits until the agent runs or has failed to start. Raises `agent.silent`."""
        runner = self._wake(session)
        try:
            async with asyncio.timeout(START_TIMEOUT):
                await runner.ready.wait()
        except TimeoutError:
            raise FreeholdError(
                "agent.silent",
                f"The agent did not start within {START_TIMEOUT:g} s",
                hint="freehold agents test NAME shows why",
            ) from None
        return runner

    def _wake(self, session: str) -> SessionRunner:
        self._refuse_while_stopped()
        runner = self._runners.get(session)
        if runner is None:
            self.dependencies.refuse_ended_run(session)
            assert self._group is not None  # `run` comes first
            runner = self._runners[session] = SessionRunner(
                self.dependencies,
                session,
                self.admission,
                self.memory,
                self._unfinished,
                idle=self._idle,
                on_turn_ended=partial(self._finish_turn, session),
            )
            self._group.create_task(self._supervise(runner))
        runner.wake()
        return runner

    def _is_stopped(self) -> bool:
        return self.dependencies.models.stopped is not None

    def _refuse_while_stopped(self) -> None:
        if self._is_stopped():
            raise FreeholdError(
                "agent.stopped.conflict",
                "The kill switch is on: no agent may work",
                hint="freehold stop --lift lets agents work again",
            )

    async def _supervise(self, runner: SessionRunner) -> None:
        try:
            try:
                await runner.run()
            except FreeholdError as error:
                log.warning("a session cannot go on: %s", error, extra={"session": runner.session})
            await self._interrupted.end_open(runner.session, "Freehold could not record how this turn ended")
        except Exception:
            # A bug in one session must not end the others. What was queued is not tried again.
            log.exception("a session ended with an unexpected error", extra={"session": runner.session})
            await self._interrupted.end_open(
                runner.session, "This turn ended with an error of Freehold", drop_queued=True
            )
        finally:
            self._runners.pop(runner.session, None)
            runner.ready.set()
            runner.stopped.set()
        if self.dependencies.has_ended_run(runner.session):
            await self._drop_queued(runner.session)
        waits = await run_blocking(self._store.turns.find_next, runner.session) is not None
        if waits and not self._is_stopped():
            self._wake(runner.session)

    async def _publish_session(self, session: str) -> None:
        row = await run_blocking(self._store.get, session)
        self._watchers.publish_session(add_place(row, self.admission.find_waiting(session)))
