"""What a turn changed and what it cost. History and the model gateway say so, not the agent."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

from freehold.agents.acp.json_rpc import Json
from freehold.agents.sessions.dependencies import SessionDependencies
from freehold.agents.sessions.rows import TurnRow
from freehold.agents.threads import run_blocking
from freehold.errors import FreeholdError
from freehold.history.calls import ListEntries, MarkFiles, RequestAuthor
from freehold.history.model import EntryRecord, SessionTurn

MAX_ENTRIES = 1000
MAX_REPORTED = 2**53
"""Tokens. No larger count is believed, and not every reader of JSON has larger numbers."""


class TurnSummary:
    """For the turns of one session. When the keeper does not answer, the turn goes on without a list of changes."""

    def __init__(self, dependencies: SessionDependencies, session: str) -> None:
        self._dependencies = dependencies
        self._session = session

    async def mark(self, phase: Literal["before", "after"], turn: TurnRow) -> int | None:
        """Records the files now. Returns the history entry; None when history does not answer."""
        row = await run_blocking(self._dependencies.store.get, self._session)
        why = str(turn.prompt["text"])[:200]
        who = RequestAuthor(by="agent", agent=row.agent, session=self._session, turn=str(turn.turn), prompt=why)
        with suppress(FreeholdError):
            return (await self._dependencies.keeper.call(MarkFiles(phase, "turn", who, why))).entry
        return None

    async def changes(self, turn: int, before: int | None) -> Json | None:
        """How many files this turn added, changed and removed since entry `before`, by its own history entries.

        `shared` means that others worked at the same time, so some of these changes may be theirs, or theirs this
        turn's.
        """
        if before is None:
            return None
        row = await run_blocking(self._dependencies.store.turns.get, self._session, turn)
        after = await self.mark("after", row)
        if after is None:
            return None
        found: list[EntryRecord] = []
        with suppress(FreeholdError):
            if after > before:
                call = ListEntries(limit=min(MAX_ENTRIES, after - before), before=after + 1)
                page = await self._dependencies.keeper.call(call)
                found = [entry for entry in reversed(page.entries) if entry.id > before]
        return _count_changes(SessionTurn(self._session, str(turn)), found, before)

    async def usage(self, turn: int, reported: object) -> Json:
        """As the model gateway counted it. What the agent reported counts only if it sent no request there."""
        counted = await self._dependencies.models.usage_of(self._session, str(turn))
        if counted.requests:
            return {"input": counted.tokens.input, "output": counted.tokens.output, "cost": counted.cost}
        usage = reported if isinstance(reported, dict) else {}
        return {
            "input": _read_count(usage.get("inputTokens")),
            "output": _read_count(usage.get("outputTokens")),
            "cost": None,
        }


def _count_changes(turn: SessionTurn, entries: Sequence[EntryRecord], before: int) -> Json:
    """`entries`: all that were recorded after `before` until the end of the turn, the oldest first."""
    authors = [entry.who for entry in entries]
    own = [place for place, who in enumerate(authors) if turn.has_made(who)]
    counted = {name: sum(getattr(entries[place], name) for place in own) for name in ("added", "changed", "removed")}
    if not own:
        return {**counted, "entry": before, "before": before, "shared": any(turn.is_beside(who) for who in authors)}
    first, last = own[0], own[-1]
    others_between = any(place not in own for place in range(first, last))
    shared = (
        others_between or any(authors[place].beside for place in own) or any(turn.is_beside(who) for who in authors)
    )
    start = entries[first - 1].id if first > 0 else before
    return {**counted, "entry": entries[last].id, "before": start, "shared": shared}


def _read_count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_REPORTED else None
