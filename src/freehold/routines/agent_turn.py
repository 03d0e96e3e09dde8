"""The turn of an agent that nobody watches: what it has cost, and how it has ended."""

from freehold.agents.acp.json_rpc import Json
from freehold.agents.sessions.rows import SessionRow
from freehold.agents.sessions.service import SessionService
from freehold.agents.threads import run_blocking
from freehold.errors import FreeholdError
from freehold.routines.prompt_text import is_nothing
from freehold.routines.run_store import RunEnd

MAX_TURNS = 50
RESTARTED = "Freehold was restarted while the agent worked. The prompt was not sent again: look at what it has done"


async def find_turn(sessions: SessionService, session: str, key: str) -> int | None:
    """The turn of the prompt with this key; None when it was never sent."""
    try:
        found = await run_blocking(sessions.dependencies.store.turns.find, session, key)
    except FreeholdError:
        return None
    return found.turn


async def find_end(sessions: SessionService, session: str, turn: int) -> tuple[RunEnd, SessionRow | None] | None:
    """How a turn, with those that answers to its questions began, has ended; None while it goes on or waits."""
    try:
        row = await sessions.get(session)
        found = await run_blocking(sessions.dependencies.store.turns.get, session, turn)
    except FreeholdError:
        return RunEnd("cancelled", error="Its session was deleted"), None
    if found.state != "ended" or row.status in ("working", "queued", "needs_you"):
        return None
    return await _read_end(sessions, row, turn), row


async def measure_cost(sessions: SessionService, session: str, turn: int) -> float | None:
    """US dollars so far; None when nothing is known."""
    row = await sessions.get(session)
    models, total = sessions.dependencies.models, None
    for one in range(turn, min(row.turns, turn + MAX_TURNS) + 1):
        cost = (await models.usage_of(session, str(one))).cost
        total = total if cost is None else (total or 0.0) + cost
    return total


async def _read_end(sessions: SessionService, row: SessionRow, turn: int) -> RunEnd:
    store = sessions.dependencies.store
    ended = await run_blocking(store.find_last_event, row.id, "turn.ended")
    said = await run_blocking(store.find_last_event, row.id, "message")
    reason = "" if ended is None else str(ended.data.get("stop_reason"))
    is_own = said is not None and (said.turn or 0) >= turn
    answer = str(said.data.get("text", "")) if said is not None and is_own else ""
    cost = await measure_cost(sessions, row.id, turn)
    if reason == "interrupted":
        return RunEnd("uncertain", answer, RESTARTED, cost)
    if reason == "cancelled" or (ended is not None and _is_stopped(ended.data)):
        return RunEnd("cancelled", answer, "It was stopped", cost)
    if row.status == "failed" or reason != "end_turn":
        error = await run_blocking(store.find_last_event, row.id, "error")
        words = f"The agent stopped: {reason}" if error is None else str(error.data.get("message", "The agent failed"))
        return RunEnd("failed", answer, words, cost)
    return RunEnd("done", answer, None, cost, quiet=is_nothing(answer))


def _is_stopped(ended: Json) -> bool:
    """Whether somebody ended the agent, such as by the kill switch."""
    error = ended.get("error")
    return isinstance(error, dict) and error.get("code") == "agent.stopped"
