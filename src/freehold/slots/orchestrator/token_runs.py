"""The orchestrator of another Freehold, asked over its API with a token of it."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from freehold.slots.answers import check_key
from freehold.slots.contract import SlotCaller
from freehold.slots.errors import SlotError
from freehold.slots.neighbour import NeighbourApi
from freehold.slots.orchestrator.contract import (
    GetChanges,
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
from freehold.slots.orchestrator.far_orchestrator import OneRunCall
from freehold.slots.settings import ExternalSettings
from freehold.strict_json import WrongShape, decode

RUNS = "/v1/slots/orchestrator/runs"


class TokenRuns:
    """Each call is one request."""

    def __init__(self, settings: ExternalSettings) -> None:
        self._api = NeighbourApi(settings)
        self.url = self._api.url

    async def open(self) -> None:
        self._api.open()

    async def close(self) -> None:
        await self._api.close()

    async def health(self) -> None:
        await self._api.send("GET", RUNS, query={"limit": 1})

    async def spawn(self, request: SpawnRun, caller: SlotCaller) -> Run:
        fields = {name: value for name, value in vars(request).items() if value is not None}
        return _run(await self._api.send("POST", RUNS, _with_key(fields, caller), may_lack_scope=True))

    async def get(self, id: str) -> Run:
        return _run(await self._api.send("GET", _path(id)))

    async def list(self, request: ListRuns) -> RunPage:
        query = {"active": "true" if request.active else None, "limit": request.limit, "cursor": request.cursor}
        found = await self._api.send("GET", RUNS, query=query)
        return RunPage(tuple(_run(one) for one in found["runs"]), found["cursor"], float(found.get("cost", 0.0)))

    async def ask_about(self, request: OneRunCall, caller: SlotCaller) -> Any:
        match request:
            case TerminateRun():
                body = _with_key({"key": request.key}, caller)
                return _run(await self._api.send("POST", f"{_path(request.id)}/stop", body))
            case TakeChanges():
                body = _with_key({"how": request.how, "force": request.force, "key": request.key}, caller)
                path = f"{_path(request.id)}/changes"
                return _run(await self._api.send("POST", path, body, seconds=request.seconds_allowed))
            case ReadRun():
                query = {"after": request.after, "limit": request.limit, "wait": int(request.seconds)}
                found = await self._api.send("GET", f"{_path(request.id)}/events", query=query)
                events = tuple(decode(RunEvent, one) for one in found["events"])
                return RunEvents(_run(found["run"]), events, found["cursor"])
            case GetChanges():
                found = await self._api.send("GET", f"{_path(request.id)}/changes", seconds=request.seconds_allowed)
                files = tuple(_change(one) for one in found["files"])
                return RunChanges(_run(found["run"]), files, found.get("total", len(files)))

    def wrong_reply(self, error: Exception) -> SlotError:
        return self._api.wrong_reply(error)


def _with_key(body: dict[str, Any], caller: SlotCaller) -> Mapping[str, Any]:
    key = body.pop("key", None)
    return body if key is None else {**body, "key": digest_key(caller, key)}


def digest_key(caller: SlotCaller, key: str) -> str:
    """There, all callers of this Freehold are one. Keys of two callers, and two keys of one, must not meet."""
    check_key("orchestrator", key)
    return hashlib.sha256(json.dumps([caller.name, key]).encode()).hexdigest()


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
