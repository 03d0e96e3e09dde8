"""Calls of the orchestrator slot, sent to another Freehold over its API."""

import asyncio
import hashlib
import itertools
import json
import logging
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast
from urllib.parse import quote

from freehold.slots.answers import check_key
from freehold.slots.contract import Reply, SlotCall, SlotCaller
from freehold.slots.errors import SlotError
from freehold.slots.neighbour import NeighbourApi
from freehold.slots.orchestrator.contract import (
    GetChanges,
    GetRun,
    ListRuns,
    ReadRun,
    Run,
    RunChange,
    RunChanges,
    RunEvent,
    RunEvents,
    RunPage,
    SpawnRun,
    TakeChanges,
    TerminateRun,
)
from freehold.slots.orchestrator.far_runs import FarRuns, check_own_count
from freehold.slots.orchestrator.store import KEPT_RUNS, check_page
from freehold.slots.settings import ExternalSettings
from freehold.strict_json import WrongShape, decode
from freehold.timeline import Timeline

RUNS = "/v1/slots/orchestrator/runs"
LOOK_INTERVAL = 15.0
AT_ONCE = 8
"""Requests at the same time."""
FORGET_EVERY = 240
"""Looks after which runs of long ago are forgotten."""
_WRONG = (WrongShape, KeyError, TypeError, ValueError)
"""What reading an answer raises that has another shape."""

log = logging.getLogger("freehold.slots")


class NeighbourRuns:
    """Each call is a request with a token of the other Freehold. Which runs are a session's is decided here, before it."""

    kind = "freehold"
    records_events = False

    def __init__(self, settings: ExternalSettings, timeline: Timeline) -> None:
        self._api = NeighbourApi(settings)
        self._far = FarRuns(timeline, self._api.url)

    async def connect(self) -> None:
        await self._far.connect()
        self._api.open()
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
                log.debug("the runs at %s were not looked at: %s", self._api.url, error)

    async def health(self) -> None:
        await self._far.health()
        await self._send("GET", RUNS, query={"limit": 1})

    async def close(self) -> None:
        await self._api.close()
        await self._far.close()

    async def call(self, request: SlotCall[Reply], caller: SlotCaller) -> Reply:
        try:
            return cast("Reply", await self._answer(request, caller))
        except _WRONG as error:
            raise self._api.wrong_reply(error) from error

    async def _answer(self, request: SlotCall[Any], caller: SlotCaller) -> Any:
        match request:
            case SpawnRun():
                return await self._spawn(request, caller)
            case ListRuns():
                return await self._list(request, caller)
            case TerminateRun() | TakeChanges():
                await self._far.require_control(request.id, caller)
                return await self._ask_about(request, caller)
            case GetRun() | ReadRun() | GetChanges():
                await self._far.require(request.id, caller)
                return await self._ask_about(request, caller)
        raise AssertionError(type(request).__name__)

    async def _ask_about(self, request: SlotCall[Any], caller: SlotCaller) -> Any:
        """One run, which the caller may see."""
        match request:
            case TerminateRun():
                body = _with_key({"key": request.key}, caller)
                return await self._run(await self._send("POST", f"{_path(request.id)}/stop", body))
            case TakeChanges():
                body = _with_key({"how": request.how, "force": request.force, "key": request.key}, caller)
                found = await self._send("POST", f"{_path(request.id)}/changes", body, seconds=request.seconds_allowed)
                return await self._run(found)
            case GetRun():
                return await self._get(request.id)
            case ReadRun():
                query = {"after": request.after, "limit": request.limit, "wait": int(request.seconds)}
                found = await self._send("GET", f"{_path(request.id)}/events", query=query)
                events = tuple(decode(RunEvent, one) for one in found["events"])
                return RunEvents(await self._run(found["run"]), events, found["cursor"])
            case GetChanges():
                found = await self._send("GET", f"{_path(request.id)}/changes", seconds=request.seconds_allowed)
                files = tuple(_change(one) for one in found["files"])
                return RunChanges(await self._run(found["run"]), files, found.get("total", len(files)))
        raise AssertionError(type(request).__name__)

    async def _spawn(self, request: SpawnRun, caller: SlotCaller) -> Run:
        request = replace(request, permissions=await self._far.limit(request, caller))
        fields = {name: value for name, value in vars(request).items() if value is not None}
        session = caller.session
        if session is None:
            begun = _run(await self._send("POST", RUNS, _with_key(fields, caller)))
            await self._far.note(begun, caller, begun.depth, request.key)
            return replace(begun, began_by=caller.name)
        async with self._far.spawning:
            depth = await self._far.check_depth(session)
            if not await self._far.is_repeated(session, request.key):
                # Counted after a look at those that may have finished meanwhile.
                active = [await self._look(id) for id in await self._far.list_unfinished(session)]
                check_own_count(sum(active))
            run = _run(await self._send("POST", RUNS, _with_key(fields, caller)))
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
        query = {"active": "true" if request.active else None, "limit": request.limit, "cursor": request.cursor}
        found = await self._send("GET", RUNS, query=query)
        runs = tuple([await self._run(one) for one in found["runs"]])
        return RunPage(runs, found["cursor"], float(found.get("cost", 0.0)))

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
        return await self._run(await self._send("GET", _path(id)))

    async def _run(self, value: object) -> Run:
        """A run as it is known here: who began it, and how deep it is."""
        run = _run(value)
        known = await self._far.find(run.id)
        if known is None:
            return run
        if run.cost != known.cost or (known.finished is None and run.finished is not None):
            await self._far.note_seen(run.id, run.cost, run.finished)
        return replace(run, parent=known.parent, depth=known.depth, began_by=known.began_by)

    async def _send(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, Any] | None = None,
        *,
        seconds: float | None = None,
    ) -> Any:
        return await self._api.send(method, path, body, query, seconds=seconds)


def _with_key(body: dict[str, Any], caller: SlotCaller) -> dict[str, Any]:
    """There, all callers of this Freehold are one. Keys of two callers, and two keys of one, must not meet."""
    key = body.pop("key", None)
    if key is None:
        return body
    check_key("orchestrator", key)
    digest = hashlib.sha256(json.dumps([caller.name, key]).encode()).hexdigest()
    return {**body, "key": digest}


def _run(value: object) -> Run:
    if not isinstance(value, dict):
        raise WrongShape("a run is not an object")
    from datetime import datetime

    times = {
        name: None if value.get(name) is None else datetime.fromisoformat(str(value[name])).timestamp()
        for name in ("created", "finished")
    }
    return decode(Run, {**value, **times})


def _change(value: object) -> RunChange:
    if not isinstance(value, dict):
        raise WrongShape("a change is not an object")
    return decode(RunChange, {name: one for name, one in value.items() if name != "traits"})


def _path(id: str) -> str:
    return f"{RUNS}/{quote(id, safe='')}"
