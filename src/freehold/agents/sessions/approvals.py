"""Permission requests that wait for the owner: stored, answered once, from whichever client answers first."""

import asyncio
from collections.abc import Callable

from freehold.agents.sessions.approval_store import AnswerDelivery, ApprovalRow, ApprovalStore, PermissionAnswer
from freehold.agents.sessions.permission_request import PermissionRequest
from freehold.agents.sessions.permission_rule_store import PermissionRuleStore
from freehold.agents.sessions.reach import Answer
from freehold.agents.sessions.rows import SessionEventRow, SessionRow
from freehold.agents.sessions.store import SessionStore
from freehold.agents.threads import run_blocking

OnApproval = Callable[[str, list[SessionEventRow], ApprovalRow], None]
"""Receives a session, its new events, and the approval that they are about."""


class Approvals:
    """Asks the owner and waits for the answer.

    After each change is stored, `on_approval` receives it, and `on_session` the session as it is then.
    """

    def __init__(
        self, sessions: SessionStore, on_approval: OnApproval, on_session: Callable[[SessionRow], None]
    ) -> None:
        self.rules = PermissionRuleStore(sessions.timeline)
        self.store = ApprovalStore(sessions.timeline)
        self._sessions = sessions
        self._on_approval = on_approval
        self._on_session = on_session
        self._waiting: dict[str, asyncio.Future[PermissionAnswer | None]] = {}

    async def ask(self, session: str, turn: int | None, request: PermissionRequest) -> PermissionAnswer | None:
        """The answer of a rule, or of the owner when it comes. None when the request was withdrawn.

        Cancelling this leaves the approval pending: the owner can still answer it after a restart.
        """
        effect = await run_blocking(self.rules.decide, session, request)
        if effect == "allow":
            return PermissionAnswer("once")
        if effect == "deny":
            return PermissionAnswer("reject")
        granted = await run_blocking(self.store.use_grant, session, request.digest)
        if granted is not None:
            return granted
        waiting: asyncio.Future[PermissionAnswer | None] = asyncio.get_running_loop().create_future()
        adding = asyncio.ensure_future(self._add(session, turn, request, waiting))
        try:
            # What is stored is published even if this is cancelled now: a client must not miss an event.
            await asyncio.shield(adding)
            self._on_session(await run_blocking(self._sessions.get, session))
            return await waiting
        finally:
            waiting.cancel()
            if adding.done() and not adding.cancelled() and adding.exception() is None:
                self._waiting.pop(adding.result(), None)

    async def _add(
        self,
        session: str,
        turn: int | None,
        request: PermissionRequest,
        waiting: "asyncio.Future[PermissionAnswer | None]",
    ) -> str:
        """Stores and publishes the request. Returns its id; an answer to it is the result of `waiting`."""
        approval, events = await run_blocking(self.store.add, session, turn, request)
        if not waiting.done():
            self._waiting[approval.id] = waiting
        # Before anything is awaited: events that are stored later have higher numbers and must be published later.
        self._on_approval(session, events, approval)
        return approval.id

    async def withdraw(self, session: str, *, orphaned: bool = False) -> None:
        """The turn has ended, and its requests need no answer. Those from before a restart stay unless `orphaned`."""
        for approval in await run_blocking(self.store.list_pending, session):
            if approval.live or orphaned:
                await self.withdraw_one(approval.id)

    async def withdraw_one(self, approval: str) -> None:
        """It needs no answer any more. Idempotent."""
        change = await run_blocking(self.store.withdraw, approval)
        if change is not None:
            await self._publish(*change)
        waiting = self._waiting.get(approval)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)

    async def answer(
        self,
        approval: str,
        answer: Answer,
        *,
        who: str,
        note: str | None = None,
        digest: str | None = None,
        delivery: AnswerDelivery | None = None,
    ) -> ApprovalRow:
        """Stores the answer. Raises `approval.not-found`, or `approval.conflict` when there is one already.

        `note` is stored with a question only. It must be one of its choices unless the question accepts free text.
        `digest` is of the call that the owner saw. `delivery` queues a prompt with the answer.
        """
        answered, events = await run_blocking(self.store.answer, approval, answer, note, who, digest, delivery)
        await self._publish(answered, events)
        waiting = self._waiting.get(approval)
        if waiting is not None and not waiting.done():
            waiting.set_result(PermissionAnswer(answer, answered.note))
        return answered

    async def _publish(self, approval: ApprovalRow, events: list[SessionEventRow]) -> None:
        # Before anything is awaited: events that are stored later have higher numbers and must be published later.
        self._on_approval(approval.session, events, approval)
        self._on_session(await run_blocking(self._sessions.get, approval.session))
