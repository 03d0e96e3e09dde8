"""The turn of an agent that nobody watches: what it has cost, and how it has ended."""

from freehold.agents.acp.json_rpc import Json
from freehold.agents.sessions.answered_turns import find_first_key, list_own_turns
from freehold.agents.sessions.approval_store import ApprovalRow
from freehold.agents.sessions.rows import SessionRow
from freehold.agents.sessions.service import SessionService
from freehold.agents.threads import run_blocking
from freehold.errors import FreeholdError
from freehold.routines.prompt_text import is_nothing
from freehold.routines.run_changes import RunEnd

RESTARTED = "Freehold was restarted while the agent worked. The prompt was not sent again: look at what it has done"


async def find_turn(sessions: SessionService, session: str, key: str) -> int | None:
    """The turn of the prompt with this key; None when it was never sent."""
    try:
        found = await run_blocking(sessions.dependencies.store.turns.find, session, key)
    except FreeholdError:
        return None
    return found.turn


async def is_at_work(sessions: SessionService, session: str, key: str) -> bool:
    """Whether the turn that runs was begun by the prompt with this key, or goes on with what it asked."""
    dependencies = sessions.dependencies
    turns, approvals = dependencies.store.turns, dependencies.approvals.store

    def find() -> bool:
        running = turns.find_running(session)
        return running is not None and find_first_key(turns, approvals, session, running) == key

    return await run_blocking(find)


async def list_questions(
    sessions: SessionService, session: str, key: str, *, is_prefix: bool = False
) -> list[ApprovalRow]:
    """What waits for the owner in a session and was asked by the turn of the prompt with this key, or of all whose key
    begins so.

    In a session that the owner uses as well, other turns ask too. The oldest first.
    """
    dependencies = sessions.dependencies
    turns, approvals = dependencies.store.turns, dependencies.approvals.store

    def find() -> list[ApprovalRow]:
        return [one for one in approvals.list_pending(session) if is_of_prompt(one)]

    def is_of_prompt(asked: ApprovalRow) -> bool:
        if asked.turn is None:
            return False
        found = find_first_key(turns, approvals, session, asked.turn)
        return found.startswith(key) if is_prefix else found == key

    return await run_blocking(find)


async def find_end(sessions: SessionService, session: str, turn: int) -> tuple[RunEnd, SessionRow | None] | None:
    """How a turn, with those that answers to its questions began, has ended; None while it goes on or waits.

    Other turns of the session say nothing about it: the owner may use it as well.
    """
    dependencies = sessions.dependencies
    turns, approvals = dependencies.store.turns, dependencies.approvals.store

    def find_own() -> list[int] | None:
        own = list_own_turns(turns, approvals, session, turn)
        is_open = any(turns.get(session, one).state != "ended" for one in own)
        return None if is_open or any(one.turn in own for one in approvals.list_pending(session)) else own

    try:
        row = await sessions.get(session)
        own = await run_blocking(find_own)
    except FreeholdError:
        return RunEnd("cancelled", error="Its session was deleted"), None
    return None if own is None else (await _read_end(sessions, row, own), row)


async def measure_cost(sessions: SessionService, session: str, turn: int) -> float | None:
    """US dollars of a turn and those that go on with what it has asked, so far; None when nothing is known."""
    dependencies = sessions.dependencies
    turns, approvals = dependencies.store.turns, dependencies.approvals.store
    return await _sum_cost(sessions, session, await run_blocking(list_own_turns, turns, approvals, session, turn))


async def _sum_cost(sessions: SessionService, session: str, own: list[int]) -> float | None:
    total: float | None = None
    for one in own:
        cost = (await sessions.dependencies.models.usage_of(session, str(one))).cost
        total = total if cost is None else (total or 0.0) + cost
    return total


async def _read_end(sessions: SessionService, row: SessionRow, own: list[int]) -> RunEnd:
    store, last = sessions.dependencies.store, own[-1]
    ended = await run_blocking(store.find_last_event, row.id, "turn.ended", last)
    said = [await run_blocking(store.find_last_event, row.id, "message", one) for one in own]
    answer = next((str(one.data.get("text", "")) for one in reversed(said) if one is not None), "")
    cost = await _sum_cost(sessions, row.id, own)
    reason = "cancelled" if ended is None else str(ended.data.get("stop_reason"))  # without it, it was never sent
    if reason == "interrupted":
        return RunEnd("uncertain", answer, RESTARTED, cost)
    if reason == "cancelled" or (ended is not None and _is_stopped(ended.data)):
        return RunEnd("cancelled", answer, "It was stopped", cost)
    if reason != "end_turn" or (row.status == "failed" and row.turns == last):
        error = await run_blocking(store.find_last_event, row.id, "error", last)
        words = f"The agent stopped: {reason}" if error is None else str(error.data.get("message", "The agent failed"))
        return RunEnd("failed", answer, words, cost)
    return RunEnd("done", answer, None, cost, quiet=is_nothing(answer))


def _is_stopped(ended: Json) -> bool:
    """Whether somebody ended the agent, such as by the kill switch."""
    error = ended.get("error")
    return isinstance(error, dict) and error.get("code") == "agent.stopped"
