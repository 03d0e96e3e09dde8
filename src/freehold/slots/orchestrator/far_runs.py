"""Whose the runs at another Freehold are. There, all callers of this one are the same."""

import asyncio

from freehold.slots.contract import SlotCaller
from freehold.slots.errors import SlotError
from freehold.slots.orchestrator.contract import CONTRACT, Run
from freehold.slots.orchestrator.schema import STEPS
from freehold.slots.orchestrator.store import MAX_DEPTH, MAX_OF_PARENT, no_run
from freehold.slots.timeline_tables import TimelineTables
from freehold.timeline import Timeline


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
        if not await self._tables.in_thread(self._timeline.query, sql, (self._place, id, caller.session)):
            raise no_run(id)

    async def list_own(self, session: str, before: int | None, limit: int) -> list[tuple[int, str]]:
        """The numbers and ids of its runs, the newest first."""
        sql = (
            "SELECT number, id FROM orchestrator_far_run WHERE place = ? AND parent = ? AND number < ?"
            " ORDER BY number DESC LIMIT ?"
        )
        given = (self._place, session, 2**62 if before is None else before, limit)
        return [(number, id) for number, id in await self._tables.in_thread(self._timeline.query, sql, given)]

    async def list_unfinished(self, session: str) -> list[str]:
        """The runs of a session that had not finished when they were last seen."""
        sql = "SELECT id FROM orchestrator_far_run WHERE place = ? AND parent = ? AND finished IS NULL"
        return [id for (id,) in await self._tables.in_thread(self._timeline.query, sql, (self._place, session))]

    async def check_depth(self, session: str) -> int:
        """How deep a run of this session would be. Raises `orchestrator.denied`."""
        sql = "SELECT depth FROM orchestrator_run WHERE session = ?"
        rows = await self._tables.in_thread(self._timeline.query, sql, (session,))
        depth = rows[0][0] + 1 if rows else 1
        if depth > MAX_DEPTH:
            raise SlotError("orchestrator", "denied", f"A run may begin others only {MAX_DEPTH - 1} deep")
        return int(depth)

    async def is_repeated(self, session: str, key: str | None) -> bool:
        """Whether the session has begun a run with this key already."""
        sql = "SELECT 1 FROM orchestrator_far_run WHERE place = ? AND parent = ? AND key = ?"
        return bool(await self._tables.in_thread(self._timeline.query, sql, (self._place, session, key)))

    async def note(self, run: Run, parent: str, depth: int, key: str | None) -> None:
        """Idempotent. The first who began it keeps it."""
        await self._change(
            "INSERT INTO orchestrator_far_run (place, id, parent, depth, key) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT DO NOTHING",
            (self._place, run.id, parent, depth, key),
        )

    async def note_finished(self, id: str, finished: float) -> None:
        sql = "UPDATE orchestrator_far_run SET finished = ? WHERE place = ? AND id = ? AND finished IS NULL"
        await self._change(sql, (finished, self._place, id))

    async def find_parent(self, id: str) -> tuple[str | None, int] | None:
        """Who began it here, and how deep it is; None for a run that nobody here began."""
        sql = "SELECT parent, depth FROM orchestrator_far_run WHERE place = ? AND id = ?"
        rows = await self._tables.in_thread(self._timeline.query, sql, (self._place, id))
        return (rows[0][0], rows[0][1]) if rows else None

    async def _change(self, sql: str, given: tuple[object, ...]) -> None:
        def change() -> None:
            with self._timeline.transaction() as tx:
                tx.execute(sql, given)

        await self._tables.in_thread(change)


def check_own_count(count: int) -> None:
    if count >= MAX_OF_PARENT:
        raise SlotError("orchestrator", "conflict", f"You have {count} runs already", hint="Wait for one of them")
