"""Calls of the orchestrator slot, carried out by another Freehold. Which runs are a session's is decided here."""

import asyncio
import itertools
import logging
import time
from dataclasses import replace
from typing import Any, cast

from freehold.slots.contract import Reply, SlotCall, SlotCaller
from freehold.slots.errors import SlotError
from freehold.slots.orchestrator.contract import (
    GetChanges,
    GetRun,
    ListRuns,
    ReadRun,
    Run,
    RunPage,
    SpawnRun,
    TakeChanges,
    TerminateRun,
)
from freehold.slots.orchestrator.far_orchestrator import FarOrchestrator
from freehold.slots.orchestrator.far_runs import FarRuns, check_own_count
from freehold.slots.orchestrator.store import KEPT_RUNS, check_page
from freehold.strict_json import WrongShape
from freehold.timeline import Timeline

LOOK_INTERVAL = 15.0
AT_ONCE = 8
"""Requests at the same time."""
FORGET_EVERY = 240
"""Looks after which runs of long ago are forgotten."""
_WRONG = (WrongShape, KeyError, TypeError, ValueError)
"""What reading an answer raises that has another shape."""

log = logging.getLogger("freehold.slots")


class NeighbourRuns:
    """`place` is the address of the other Freehold as the manifest has it. `kind` says how it is asked."""

    records_events = False

    def __init__(self, kind: str, place: str, orchestrator: FarOrchestrator, timeline: Timeline) -> None:
        self.kind = kind
        self._place = place
        self._there = orchestrator
        self._far = FarRuns(timeline, place)

    async def connect(self) -> None:
        await self._far.connect()
        await self._there.open()
        await self.health()

    async def work(self) -> None:
        """Looks at the runs that go on, so that what they cost counts here although nobody asks for them."""
        for number in itertools.count():
            await asyncio.sleep(LOOK_INTERVAL)
            try:
                if number % FORGET_EVERY == 0:
                    await self._far.forget(time.time() - KEPT_RUNS)
                for id in await self._far.list_unfinished():
                    await self._look(id)
            except (SlotError, *_WRONG) as error:
                log.debug("the runs at %s were not looked at: %s", self._place, error)

    async def health(self) -> None:
        await self._far.health()
        await self._there.health()

    async def close(self) -> None:
        await self._there.close()
        await self._far.close()

    async def call(self, request: SlotCall[Reply], caller: SlotCaller) -> Reply:
        try:
            return cast("Reply", await self._answer(request, caller))
        except _WRONG as error:
            raise self._there.wrong_reply(error) from error

    async def _answer(self, request: SlotCall[Any], caller: SlotCaller) -> Any:
        match request:
            case SpawnRun():
                return await self._spawn(request, caller)
            case ListRuns():
                return await self._list(request, caller)
            case TerminateRun() | TakeChanges():
                await self._far.require_control(request.id, caller)
                return await self._know(await self._there.ask_about(request, caller))
            case GetRun():
                await self._far.require(request.id, caller)
                return await self._get(request.id)
            case ReadRun() | GetChanges():
                await self._far.require(request.id, caller)
                found = await self._there.ask_about(request, caller)
                return replace(found, run=await self._know(found.run))
        raise AssertionError(type(request).__name__)

    async def _spawn(self, request: SpawnRun, caller: SlotCaller) -> Run:
        request = replace(request, permissions=await self._far.limit(request, caller))
        session = caller.session
        if session is None:
            begun = await self._there.spawn(request, caller)
            await self._far.note(begun, caller, begun.depth, request.key)
            return replace(begun, began_by=caller.name)
        async with self._far.spawning:
            depth = await self._far.check_depth(session)
            if not await self._far.is_repeated(session, request.key):
                # Counted after a look at those that may have finished meanwhile.
                active = [await self._look(id) for id in await self._far.list_unfinished(session)]
                check_own_count(sum(active))
            run = await self._there.spawn(request, caller)
            await self._far.note(run, caller, depth, request.key)
        return replace(run, parent=session, depth=depth, began_by=caller.name)

    async def _look(self, id: str) -> bool:
        """Whether a run has not finished. One that is forgotten there has."""
        found = await self._find(id)
        if found is None:
            await self._far.note_seen(id, None, time.time())
        return found is not None and found.finished is None

    async def _list(self, request: ListRuns, caller: SlotCaller) -> RunPage:
        session = request.parent if caller.session is None else caller.session
        if session is not None:
            return await self._list_own(request, session)
        found = await self._there.list(request)
        return replace(found, runs=tuple([await self._know(one) for one in found.runs]))

    async def _list_own(self, request: ListRuns, session: str) -> RunPage:
        """The runs of one session of here, each asked for by its id: the other side does not know whose they are."""
        before = check_page(request)
        rows = await self._far.list_own(session, before, request.limit + 1)
        ids, found = [id for _, id in rows[: request.limit]], list[Run | None]()
        for first in range(0, len(ids), AT_ONCE):
            found += await asyncio.gather(*(self._find(id) for id in ids[first : first + AT_ONCE]))
        runs = tuple(one for one in found if one is not None and (not request.active or one.finished is None))
        cursor = str(rows[request.limit - 1][0]) if len(rows) > request.limit else None
        return RunPage(runs, cursor, await self._far.count_cost(session))

    async def _find(self, id: str) -> Run | None:
        """None for one that is forgotten there."""
        try:
            return await self._get(id)
        except SlotError as error:
            if error.problem != "not-found":
                raise
            return None

    async def _get(self, id: str) -> Run:
        return await self._know(await self._there.get(id))

    async def _know(self, run: Run) -> Run:
        """A run as it is known here: who began it, and how deep it is."""
        known = await self._far.find(run.id)
        if known is None:
            return run
        if run.cost != known.cost or (known.finished is None and run.finished is not None):
            await self._far.note_seen(run.id, run.cost, run.finished)
        return replace(run, parent=known.parent, depth=known.depth, began_by=known.began_by)
