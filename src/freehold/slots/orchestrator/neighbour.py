"""Calls of the orchestrator slot, sent to another Freehold over its API."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import quote

from freehold.slots.answers import check_key
from freehold.slots.contract import Reply, SlotCall, SlotCaller
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
from freehold.slots.settings import ExternalSettings
from freehold.strict_json import WrongShape, decode

RUNS = "/v1/slots/orchestrator/runs"


class NeighbourRuns:
    """Each call is one request with a token of the other Freehold, which decides about all of it."""

    kind = "freehold"
    records_events = False

    def __init__(self, settings: ExternalSettings) -> None:
        self._api = NeighbourApi(settings)

    async def connect(self) -> None:
        self._api.open()
        await self.health()

    async def health(self) -> None:
        await self._send("GET", RUNS, query={"limit": 1})

    async def close(self) -> None:
        await self._api.close()

    async def call(self, request: SlotCall[Reply], caller: SlotCaller) -> Reply:
        try:
            return cast("Reply", await self._answer(request, caller))
        except (WrongShape, KeyError, TypeError, ValueError) as error:
            raise self._api.wrong_reply(error) from error

    async def _answer(self, request: SlotCall[Any], caller: SlotCaller) -> Any:
        match request:
            case SpawnRun():
                body = {name: value for name, value in vars(request).items() if value is not None}
                return _run(await self._send("POST", RUNS, _with_key(body, caller)))
            case TerminateRun():
                return _run(
                    await self._send("POST", f"{_path(request.id)}/stop", _with_key({"key": request.key}, caller))
                )
            case TakeChanges():
                body = {"how": request.how, "force": request.force, "key": request.key}
                return _run(await self._send("POST", f"{_path(request.id)}/changes", _with_key(body, caller)))
            case GetRun():
                return _run(await self._send("GET", _path(request.id)))
            case ListRuns():
                query = {"active": "true" if request.active else None, "limit": request.limit, "cursor": request.cursor}
                found = await self._send("GET", RUNS, query=query)
                return RunPage(tuple(_run(one) for one in found["runs"]), found["cursor"])
            case ReadRun():
                query = {"after": request.after, "limit": request.limit, "wait": int(request.seconds)}
                found = await self._send("GET", f"{_path(request.id)}/events", query=query)
                events = tuple(decode(RunEvent, one) for one in found["events"])
                return RunEvents(_run(found["run"]), events, found["cursor"])
            case GetChanges():
                found = await self._send("GET", f"{_path(request.id)}/changes")
                return RunChanges(_run(found["run"]), tuple(decode(RunChange, one) for one in found["files"]))
        raise AssertionError(type(request).__name__)

    async def _send(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, query: Mapping[str, Any] | None = None
    ) -> Any:
        return await self._api.send(method, path, body, query)


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


def _path(id: str) -> str:
    return f"{RUNS}/{quote(id, safe='')}"
