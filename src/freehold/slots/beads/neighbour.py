"""Calls of the beads slot, sent to another Freehold over its API."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast
from urllib.parse import quote

from freehold.slots.beads.actor_names import ActorNames
from freehold.slots.beads.checks import check_id, check_text
from freehold.slots.beads.contract import (
    AddNeed,
    Bead,
    BeadChange,
    BeadComment,
    BeadDetails,
    BeadImport,
    BeadPage,
    BeadRecords,
    BeadWrite,
    ClaimBead,
    CloseBead,
    CommentBead,
    CreateBead,
    ExportBeads,
    GetBead,
    ImportBeads,
    ListBeads,
    ReleaseBead,
    RemoveNeed,
    ReopenBead,
    UpdateBead,
)
from freehold.slots.contract import Reply, SlotCall, SlotCaller
from freehold.slots.errors import SlotError, slot_unavailable
from freehold.slots.neighbour import NeighbourApi
from freehold.slots.settings import ExternalSettings
from freehold.strict_json import WrongShape, decode

ITEMS = "/v1/slots/beads/items"
MAX_EXPORT = 50
"""How many records are asked for at once, so that long ones fit into one reply."""
_PATHS: Mapping[type[BeadWrite], str] = {
    ClaimBead: "/claim",
    ReleaseBead: "/release",
    CloseBead: "/close",
    ReopenBead: "/reopen",
    AddNeed: "/needs",
    CommentBead: "/comments",
}
"""Where a change of an item is sent."""


@dataclass(frozen=True)
class _Ids:
    ids: tuple[str, ...]


@dataclass(frozen=True)
class _Records:
    records: tuple[Mapping[str, object], ...]


class NeighbourBeads:
    """Each call is one request, in the name of its caller. Rules and checks are those of the other Freehold."""

    kind = "freehold"
    records_events = False

    def __init__(self, settings: ExternalSettings) -> None:
        self._api = NeighbourApi(settings)
        self._names: ActorNames | None = None

    async def connect(self) -> None:
        self._api.open()
        try:
            found = await self._api.send("GET", "/v1/slots/beads/caller")
            self._names = ActorNames(f"{_text(found, 'name')}/")
        except WrongShape as error:
            raise self._api.wrong_reply(error) from error
        await self.health()

    async def health(self) -> None:
        await self._api.send("GET", ITEMS, query={"limit": 1})

    async def close(self) -> None:
        await self._api.close()

    async def call(self, request: SlotCall[Reply], caller: SlotCaller) -> Reply:
        if self._names is None:
            raise slot_unavailable("beads", "it is not connected")
        try:
            return cast("Reply", await self._answer(request, caller.name, self._names))
        except SlotError as error:
            error.message = self._names.words_here(error.message)
            raise
        except (WrongShape, KeyError, TypeError, ValueError) as error:
            raise self._api.wrong_reply(error) from error

    async def _answer(self, request: SlotCall[Any], actor: str, names: ActorNames) -> Any:
        match request:
            case BeadWrite():
                return names.bead(_bead(await self._change(request, actor)))
            case GetBead():
                return names.details(_details(await self._api.send("GET", _path(request.id), actor=actor)))
            case ListBeads():
                found = await self._api.send("GET", ITEMS, query=_filters(request, names), actor=actor)
                return BeadPage(tuple(names.bead(_bead(one)) for one in found["beads"]), _cursor(found))
            case ExportBeads():
                query = {"limit": min(request.limit, MAX_EXPORT), "cursor": request.cursor}
                found = await self._api.send("GET", "/v1/slots/beads/export", query=query, actor=actor)
                records = decode(_Records, {"records": found["records"]}).records
                return BeadRecords(tuple(names.record(one) for one in records), _cursor(found))
            case ImportBeads():
                body = {"records": list(request.records), "key": request.key}
                return decode(
                    BeadImport, await self._api.send("POST", "/v1/slots/beads/import", _given(body), actor=actor)
                )
        raise AssertionError(type(request).__name__)

    async def _change(self, request: BeadWrite, actor: str) -> Any:
        body = _given(vars(request))
        if isinstance(request, CreateBead):
            return await self._api.send("POST", ITEMS, body, actor=actor)
        path = _path(body.pop("id"))
        if isinstance(request, UpdateBead):
            return await self._api.send("PATCH", path, body, actor=actor)
        if isinstance(request, RemoveNeed):
            check_id(request.needs)
            return await self._api.send(
                "DELETE", f"{path}/needs/{quote(request.needs, safe='')}", query={"key": request.key}, actor=actor
            )
        return await self._api.send("POST", path + _PATHS[type(request)], body, actor=actor)


def _filters(request: ListBeads, names: ActorNames) -> dict[str, Any]:
    for name in ("label", "holder", "text"):
        check_text(name, getattr(request, name) or "")
    holder = None if request.holder is None else names.wanted_there(request.holder)
    return {**vars(request), "ready": "true" if request.ready else None, "holder": holder}


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _path(id: str) -> str:
    check_id(id)
    return f"{ITEMS}/{quote(id, safe='')}"


def _bead(value: object) -> Bead:
    return decode(Bead, _with_seconds(value, "created", "updated", "closed"))


def _details(value: Any) -> BeadDetails:
    return BeadDetails(
        _bead(value["bead"]),
        decode(_Ids, {"ids": value["children"]}).ids,
        decode(_Ids, {"ids": value["blocks"]}).ids,
        tuple(decode(BeadComment, _with_seconds(one, "at")) for one in value["comments"]),
        tuple(decode(BeadChange, _with_seconds(one, "at")) for one in value["history"]),
    )


def _with_seconds(value: object, *names: str) -> dict[str, Any]:
    """The object with its times as seconds since 1970."""
    if not isinstance(value, dict):
        raise WrongShape("an object is missing")
    times = {name: datetime.fromisoformat(_text(value, name)).timestamp() for name in names if value.get(name)}
    return {**value, **times}


def _cursor(found: Mapping[str, Any]) -> str | None:
    return None if found["cursor"] is None else _text(found, "cursor")


def _text(found: Mapping[str, Any], name: str) -> str:
    value = found.get(name)
    if not isinstance(value, str) or not value:
        raise WrongShape(f"{name} is not a text")
    return value
