"""Whose the runs at another Freehold are. There, all callers of this one are the same."""

import asyncio
from dataclasses import dataclass
from typing import Any

from freehold.slots.contract import SlotCaller
from freehold.slots.errors import SlotError
from freehold.slots.orchestrator.bounds import MAX_DEPTH, MAX_OF_PARENT
from freehold.slots.orchestrator.contract import CONTRACT, Run, RunPermission, SpawnRun
from freehold.slots.orchestrator.permissions import OF_SESSIONS, check_control, find_permissions, limit_permissions
from freehold.slots.orchestrator.schema import STEPS
from freehold.slots.orchestrator.store import no_run
from freehold.slots.timeline_tables import TimelineTables
from freehold.timeline import Timeline


@dataclass(frozen=True)
class FarRun:
    """Who began a run, how deep it is, and what it had cost when it was last seen."""

    parent: str | None
    depth: int
    began_by: str
    cost: float | None
    finished: float | None


class FarRuns:
    """A table of this Freehold. `place` is the address of the other one."""

    def __init__(self, timeline: Timeline, place: str) -> None:
        self._timeline = timeline
        self._place = place
        self._tables = TimelineTables(CONTRACT, timeline, STEPS, {})
        self.spawning = asyncio.Lock()
        """Held from the look at the bounds until the run is noted."""

    async def connect(self) -> None:
        await self._tables.connect()

    async def health(self) -> None:
        await self._tables.health()

    async def close(self) -> None:
        await self._tables.close()

    async def require(self, id: str, caller: SlotCaller) -> None:
        """Raises `orchestrator.not-found` for a session that did not begin it. Nothing is asked there before."""
        if caller.session is None:
            return
        sql = "SELECT 1 FROM orchestrator_far_run WHERE place = ? AND id = ? AND parent = ?"
        if not await self._query(sql, self._place, id, caller.session):
            raise no_run(id)

    async def require_control(self, id: str, caller: SlotCaller) -> None:
        """As `require`, for who ends a run or takes its changes. Raises `orchestrator.denied` for a program."""
        await self.require(id, caller)
        rows = await self._query(
            "SELECT began_by FROM orchestrator_far_run WHERE place = ? AND id = ?", self._place, id
        )
        # What nobody here began is not for the programs of here.
        check_control(id, rows[0][0] if rows else "", caller)

    async def limit(self, request: SpawnRun, caller: SlotCaller) -> tuple[RunPermission, ...] | None:
        """What a new run may do there. A session reaches nothing of what that Freehold remembers, owes and keeps."""
        own: tuple[RunPermission, ...] = await self._tables.in_thread(find_permissions, self._timeline, caller)
        if caller.session is None:
            return None if request.permissions is None else limit_permissions(request, own)
        return limit_permissions(request, tuple(one for one in own if one in OF_SESSIONS))

    async def list_own(self, session: str, before: int | None, limit: int) -> list[tuple[int, str]]:
        """The numbers and ids of its runs, the newest first."""
        sql = (
            "SELECT number, id FROM orchestrator_far_run WHERE place = ? AND parent = ? AND number < ?"
            " ORDER BY number DESC LIMIT ?"
        )
        rows = await self._query(sql, self._place, session, 2**62 if before is None else before, limit)
        return [(number, id) for number, id in rows]

    async def list_unfinished(self, session: str | None = None) -> list[str]:
        """The runs of a session, or all, that had not finished when they were last seen."""
        sql = (
            "SELECT id FROM orchestrator_far_run WHERE place = ? AND coalesce(?, parent) IS parent AND finished IS NULL"
        )
        return [id for (id,) in await self._query(sql, self._place, session)]

    async def count_cost(self, session: str) -> float:
        """What the runs of a session have cost there, as far as it was told."""
        sql = "SELECT total(cost) FROM orchestrator_far_run WHERE place = ? AND parent = ?"
        return float((await self._query(sql, self._place, session))[0][0])

    async def check_depth(self, session: str) -> int:
        """How deep a run of this session would be. Raises `orchestrator.denied`."""
        sql = "SELECT depth FROM orchestrator_run WHERE session = ?"
        rows = await self._query(sql, session)
        depth = rows[0][0] + 1 if rows else 1
        if depth > MAX_DEPTH:
            raise SlotError("orchestrator", "denied", f"A run may begin others only {MAX_DEPTH - 1} deep")
        return int(depth)

    async def is_repeated(self, session: str, key: str | None) -> bool:
        """Whether the session has begun a run with this key already."""
        sql = "SELECT 1 FROM orchestrator_far_run WHERE place = ? AND parent = ? AND key = ?"
        return bool(await self._query(sql, self._place, session, key))

    async def note(self, run: Run, caller: SlotCaller, depth: int, key: str | None) -> None:
        """Idempotent. The first who began it keeps it."""
        await self._change(
            "INSERT INTO orchestrator_far_run (place, id, parent, depth, key, began_by, cost) VALUES (?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT DO NOTHING",
            (self._place, run.id, caller.session, depth, key, caller.name, run.cost),
        )

    async def note_seen(self, id: str, cost: float | None, finished: float | None) -> None:
        """What a run has cost so far, and when it finished. None: not known."""
        sql = (
            "UPDATE orchestrator_far_run SET cost = coalesce(?, cost), finished = coalesce(finished, ?)"
            " WHERE place = ? AND id = ?"
        )
        await self._change(sql, (cost, finished, self._place, id))

    async def forget(self, before: float) -> None:
        """Runs that finished before this moment. The other side has forgotten them too."""
        await self._change("DELETE FROM orchestrator_far_run WHERE finished < ?", (before,))

    async def find(self, id: str) -> FarRun | None:
        """None for a run that nobody here began."""
        sql = "SELECT parent, depth, began_by, cost, finished FROM orchestrator_far_run WHERE place = ? AND id = ?"
        rows = await self._query(sql, self._place, id)
        return FarRun(*rows[0]) if rows else None

    async def _query(self, sql: str, *given: object) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = await self._tables.in_thread(self._timeline.query, sql, given)
        return rows

    async def _change(self, sql: str, given: tuple[object, ...]) -> None:
        def change() -> None:
            with self._timeline.transaction() as tx:
                tx.execute(sql, given)

        await self._tables.in_thread(change)


def check_own_count(count: int) -> None:
    if count >= MAX_OF_PARENT:
        raise SlotError("orchestrator", "conflict", f"You have {count} runs already", hint="Wait for one of them")
