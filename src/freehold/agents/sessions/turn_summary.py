"""What a turn did to the files and what it cost: told by history and the model gateway, never by the agent."""

from collections.abc import Sequence
from contextlib import suppress
from typing import Literal

from freehold.agents.ground import Ground
from freehold.agents.rpc import Json
from freehold.agents.store import TurnRow
from freehold.errors import FreeholdError
from freehold.history.model import Turn, Who

MAX_ENTRIES = 1000


class Reckoning:
    """Of one session. A keeper that is away does not stop work; the turn then says nothing of files."""

    def __init__(self, ground: Ground, session: str) -> None:
        self._ground = ground
        self._session = session

    async def mark(self, phase: Literal["before", "after"], turn: TurnRow) -> int | None:
        """The entry of history whose state the files are in now."""
        row = await self._ground.on_disk(self._ground.store.get, self._session)
        why = str(turn.prompt["text"])[:200]
        who = {"by": "agent", "agent": row.agent, "session": self._session, "turn": str(turn.turn), "prompt": why}
        with suppress(FreeholdError):
            found = await self._ground.keeper("history.mark", {"phase": phase, "kind": "turn", "who": who, "why": why})
            return int(found["entry"])
        return None

    async def changes(self, turn: int, before: int | None) -> Json | None:
        """How many files came, changed and went by this turn's own entries since `before`: from `before` to `entry`.

        `shared` when others worked at the same time, so that one of those entries may hold theirs, or one of theirs its.
        """
        if before is None:
            return None
        after = await self.mark("after", await self._ground.on_disk(self._ground.store.turn, self._session, turn))
        if after is None:
            return None
        found: list[Json] = []
        with suppress(FreeholdError):
            if after > before:
                asked = {"limit": min(MAX_ENTRIES, after - before), "before": after + 1}
                page = await self._ground.keeper("history.log", asked)
                found = [entry for entry in reversed(page["entries"]) if entry["id"] > before]
        return _told(Turn(self._session, str(turn)), found, before)

    async def usage(self, turn: int, said: object) -> Json:
        """As the model gateway counted it; what the agent `said` itself only where no request went through there."""
        spent = await self._ground.money.spent(self._session, str(turn))
        if spent is not None:
            return {"input": spent.input, "output": spent.output, "cost": spent.cost}
        told = said if isinstance(said, dict) else {}
        return {"input": _count(told.get("inputTokens")), "output": _count(told.get("outputTokens")), "cost": None}


def _told(turn: Turn, entries: Sequence[Json], before: int) -> Json:
    """`entries`: all that were made after `before` until the turn's end, oldest first."""
    made = [Who(**entry["who"]) for entry in entries]
    own = [place for place, who in enumerate(made) if turn.made(who)]
    counted = {name: sum(entries[place][name] for place in own) for name in ("added", "changed", "removed")}
    if not own:
        return {**counted, "entry": before, "before": before, "shared": any(turn.was_beside(who) for who in made)}
    first, last = own[0], own[-1]
    amid = any(place not in own for place in range(first, last))
    shared = amid or any(made[place].beside for place in own) or any(turn.was_beside(who) for who in made)
    start = entries[first - 1]["id"] if first > 0 else before
    return {**counted, "entry": entries[last]["id"], "before": start, "shared": shared}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
