"""Turns that did not end by themselves, because Freehold was restarted or met an error. None of them stays open.

What their agents had written until then becomes part of the transcript.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from freehold.agents.acp.json_rpc import Json
from freehold.agents.sessions.dependencies import SessionDependencies
from freehold.agents.sessions.rows import DraftEvent, Status
from freehold.agents.threads import run_blocking
from freehold.errors import FreeholdError

STORE_RETRY_DELAY = 1.0

log = logging.getLogger("freehold.agents")


class InterruptedTurns:
    """`publish` tells clients the state of a session."""

    def __init__(self, dependencies: SessionDependencies, publish: Callable[[str], Awaitable[None]]) -> None:
        self._approvals = dependencies.approvals
        self._turns = dependencies.store.turns
        self._store = dependencies.store
        self._watchers = dependencies.watchers
        self._publish = publish

    async def recover(self) -> None:
        """Ends the turns that a former process left open. Nobody waits for its permission requests any more."""
        await run_blocking(self._approvals.store.mark_all_orphaned)
        await self._end_runs()
        for session, turn in await run_blocking(self._turns.list_unfinished):
            await self._end(session, turn, "Freehold was restarted in the middle of this turn")

    async def _end_runs(self) -> None:
        """The computers of runs are gone: nothing of theirs may go on, neither a prompt nor a question."""
        waiting = await run_blocking(self._turns.list_queued_sessions)
        asking = [one.session for one in await run_blocking(self._approvals.store.list_pending)]
        for session in dict.fromkeys((*waiting, *asking)):
            if self._store.is_of_run(session):
                self._watchers.publish_events(session, await run_blocking(self._turns.drop_queued, session))
                await self._approvals.withdraw(session, orphaned=True)

    async def end_open(self, session: str, why: str, *, drop_queued: bool = False) -> None:
        """Ends the turn that a session has left open. Tries again until that is stored: the disk may be full now."""
        while True:
            try:
                if drop_queued:
                    self._watchers.publish_events(session, await run_blocking(self._turns.drop_queued, session))
                for turn in await run_blocking(self._turns.list_unfinished):
                    if turn[0] == session:
                        await self._approvals.withdraw(session)
                        await self._end(*turn, why)
            except FreeholdError as error:
                log.warning("the end of a turn cannot be stored, trying again: %s", error, extra={"session": session})
                await asyncio.sleep(STORE_RETRY_DELAY)
            else:
                return

    async def _end(self, session: str, turn: int, why: str) -> None:
        error = FreeholdError(
            "session.interrupted", why, hint="The prompt was not sent again. Send another prompt to continue"
        )
        ended: Json = {"stop_reason": "interrupted", "error": dict(error.body()), "changes": None, "usage": None}
        status: Status = "needs_you" if await run_blocking(self._approvals.store.list_pending, session) else "failed"
        drafts: list[DraftEvent] = await run_blocking(self._store.unfinished.read, session, turn)
        drafts += [("error", ended["error"]), ("turn.ended", ended)]
        events = await run_blocking(self._store.append, session, turn, drafts, status=status, ended=True)
        self._watchers.publish_events(session, events)
        await self._publish(session)
