"""Calls of the orchestrator slot, sent to another Freehold over its API."""

import hashlib
import json
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
from freehold.slots.orchestrator.store import check_page
from freehold.slots.settings import ExternalSettings
from freehold.strict_json import WrongShape, decode
from freehold.timeline import Timeline

RUNS = "/v1/slots/orchestrator/runs"


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

    async def health(self) -> None:
        await self._far.health()
        await self._send("GET", RUNS, query={"limit": 1})

    async def close(self) -> None:
        await self._api.close()
        await self._far.close()

    async def call(self, request: SlotCall[Reply], caller: SlotCaller) -> Reply:
        try:
            return cast("Reply", await self._answer(request, caller))
        except (WrongShape, KeyError, TypeError, ValueError) as error:
            raise self._api.wrong_reply(error) from error

    async def _answer(self, request: SlotCall[Any], caller: SlotCaller) -> Any:
        match request:
            case SpawnRun():
                return await self._spawn(request, caller)
            case ListRuns():
                return await self._list(request, caller)
            case TerminateRun() | TakeChanges() | GetRun() | ReadRun() | GetChanges():
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
        fields = {name: value for name, value in vars(request).items() if value is not None}
        session = caller.session
        if session is None:
            return await self._run(await self._send("POST", RUNS, _with_key(fields, caller)))
        async with self._far.spawning:
            depth = await self._far.check_depth(session)
            if not await self._far.is_repeated(session, request.key):
                # Counted after a look at those that may have finished meanwhile.
                active = [await self._look(id) for id in await self._far.list_unfinished(session)]
                check_own_count(sum(active))
            run = _run(await self._send("POST", RUNS, _with_key(fields, caller)))
            await self._far.note(run, session, depth, request.key)
        return replace(run, parent=session, depth=depth)

    async def _look(self, id: str) -> bool:
        """Whether a run has not finished. One that is forgotten there has."""
        try:
            return (await self._get(id)).finished is None
        except SlotError as error:
            if error.problem != "not-found":
                raise
        await self._far.note_finished(id, time.time())
        return False

    async def _list(self, request: ListRuns, caller: SlotCaller) -> RunPage:
        session = request.parent if caller.session is None else caller.session
        if session is not None:
            return await self._list_own(request, session)
        query = {"active": "true" if request.active else None, "limit": request.limit, "cursor": request.cursor}
        found = await self._send("GET", RUNS, query=query)
        return RunPage(tuple([await self._run(one) for one in found["runs"]]), found["cursor"])

    async def _list_own(self, request: ListRuns, session: str) -> RunPage:
        """The runs of one session of here, each asked for by its id: the other side does not know whose they are."""
        before = check_page(request)
        rows = await self._far.list_own(session, before, request.limit + 1)
        found: list[Run] = []
        for _, id in rows[: request.limit]:
            try:
                found.append(await self._get(id))
            except SlotError as error:
                if error.problem != "not-found":  # forgotten there
                    raise
        runs = tuple(one for one in found if not request.active or one.finished is None)
        return RunPage(runs, str(rows[request.limit - 1][0]) if len(rows) > request.limit else None)

    async def _get(self, id: str) -> Run:
        return await self._run(await self._send("GET", _path(id)))

    async def _run(self, value: object) -> Run:
        """A run as it is known here: who began it, and how deep it is."""
        run = _run(value)
        known = await self._far.find_parent(run.id)
        if known is None:
            return run
        if run.finished is not None:
            await self._far.note_finished(run.id, run.finished)
        return replace(run, parent=known[0], depth=known[1])

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
