"""Calls of the orchestrator slot, sent to another Freehold over its API."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import quote, urlsplit

import httpx2

from freehold.slots.bounded_http import make_client
from freehold.slots.contract import Reply, SlotCall, SlotCaller
from freehold.slots.errors import SlotError, SlotProblem, slot_unavailable
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

TIMEOUT = 8.0
MAX_REPLY = 32 * 1024 * 1024
RUNS = "/v1/slots/orchestrator/runs"
HERE = frozenset({"localhost", "127.0.0.1", "::1"})
_PROBLEMS: Mapping[str, SlotProblem] = {
    "disabled": "disabled",
    "not-found": "not-found",
    "claimed": "claimed",
    "invalid": "invalid",
    "denied": "denied",
    "conflict": "conflict",
}


class NeighbourRuns:
    """Each call is one request with a token of the other Freehold, which decides about all of it."""

    kind = "freehold"
    records_events = False

    def __init__(self, settings: ExternalSettings) -> None:
        settings.require_known("url", "token", "privacy")
        url = settings.require("url").rstrip("/")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None or parts.path:
            raise settings.wrong(
                "slots.orchestrator.settings.url is not the address of a Freehold",
                'url = "https://freehold.example.com"',
            )
        if parts.scheme == "http" and parts.hostname not in HERE:
            raise settings.wrong("slots.orchestrator.settings.url is not encrypted", "Use https beyond this machine")
        token = settings.secret("token")
        if token is None:
            raise settings.wrong("slots.orchestrator.settings.token is missing", 'token = "secret:NAME"')
        self._url = url
        self._headers = {"authorization": f"Bearer {token.reveal()}"}
        self._http: httpx2.AsyncClient | None = None

    async def connect(self) -> None:
        if self._http is None:
            self._http = make_client(MAX_REPLY, base_url=self._url, headers=self._headers, timeout=TIMEOUT)
        await self.health()

    async def health(self) -> None:
        await self._send("GET", f"{RUNS}?limit=1")

    async def close(self) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.aclose()

    async def call(self, request: SlotCall[Reply], caller: SlotCaller) -> Reply:
        try:
            return cast("Reply", await self._answer(request, caller))
        except (WrongShape, KeyError, TypeError, ValueError) as error:
            raise slot_unavailable("orchestrator", f"the reply of {self._url} is not valid: {error}") from error

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
        if self._http is None:
            raise slot_unavailable("orchestrator", "it is not connected")
        params = {name: value for name, value in (query or {}).items() if value is not None}
        try:
            async with asyncio.timeout(TIMEOUT):
                answer = await self._http.request(method, path, json=body, params=params)
        except (httpx2.HTTPError, OSError, TimeoutError) as error:
            raise slot_unavailable(
                "orchestrator", (str(error) or type(error).__name__).splitlines()[0][:200]
            ) from error
        try:
            found = answer.json()
        except (ValueError, RecursionError):
            found = None
        if answer.is_success and isinstance(found, dict):
            return found
        raise self._read_error(answer.status_code, found)

    def _read_error(self, status: int, body: object) -> SlotError:
        error = body.get("error") if isinstance(body, dict) else None
        if not isinstance(error, dict) or not isinstance(error.get("code"), str):
            return slot_unavailable("orchestrator", f"{self._url} answered {status}, and not as a Freehold does")
        message = "".join(one if one.isprintable() else " " for one in str(error.get("message", ""))[:500])
        problem = _PROBLEMS.get(error["code"].rpartition(".")[2]) if error["code"].startswith("orchestrator.") else None
        if problem is None or problem == "disabled":
            return slot_unavailable("orchestrator", message or error["code"][:100])
        return SlotError("orchestrator", problem, message)


def _with_key(body: dict[str, Any], caller: SlotCaller) -> dict[str, Any]:
    """There, all callers of this Freehold are one. Keys of two callers must not meet."""
    key = body.pop("key", None)
    return body if key is None else {**body, "key": f"{caller.name[:60]} {key}"[:200]}


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
