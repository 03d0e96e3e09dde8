"""Memories that a paired Freehold keeps, over its API. Who here may reach what is decided here.

Nobody there knows our owner, so what is stored there counts as a program's word, whoever wrote it. What is pinned is
known here only: see `pins`.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal, cast
from urllib.parse import quote

from freehold.slots.contract import Reply, SlotCall, SlotCaller
from freehold.slots.errors import SlotError
from freehold.slots.memory.changes import (
    new_memory_id,
    origin_for,
    require_may_change,
    require_may_forget,
    require_may_pin,
    require_room,
)
from freehold.slots.memory.checks import (
    check_id,
    check_memory_text,
    check_moment,
    check_namespace,
    check_page,
    check_reach,
    may_reach,
    not_found,
)
from freehold.slots.memory.contract import (
    MAX_MATCHES,
    MAX_TEXT,
    ExportMemories,
    ForgetMemory,
    ForgottenMemory,
    GetMemory,
    GetMemoryStatus,
    ImportMemories,
    ListMemories,
    Memory,
    MemoryImport,
    MemoryMatch,
    MemoryMatches,
    MemoryPage,
    MemoryRecords,
    MemoryStatus,
    SearchMemories,
    StoreMemory,
    UpdateMemory,
)
from freehold.slots.memory.pins import NeighbourPins
from freehold.slots.neighbour import NeighbourApi
from freehold.slots.settings import ExternalSettings
from freehold.strict_json import WrongShape, decode, encode
from freehold.timeline import Timeline

SLOT = "/v1/slots/memory"
ENTRIES = f"{SLOT}/entries"
_MOMENTS = ("created", "updated", "expires", "last_used")


@dataclass(frozen=True)
class _Match:
    score: float
    words: tuple[str, ...]


@dataclass(frozen=True)
class _Found:
    by: Literal["meaning", "words"]
    waiting: int


class NeighbourMemory:
    kind = "freehold"
    records_events = False

    def __init__(self, settings: ExternalSettings, timeline: Timeline) -> None:
        self._api = NeighbourApi(settings)
        self._pins = NeighbourPins(timeline, self._api.url)

    async def connect(self) -> None:
        await self._pins.load()
        self._api.open()
        await self.health()

    async def health(self) -> None:
        await self._api.send("GET", ENTRIES, query={"limit": 1})

    async def close(self) -> None:
        await self._api.close()

    async def call(self, request: SlotCall[Reply], caller: SlotCaller) -> Reply:
        try:
            return cast("Reply", await self._answer(request, caller))
        except (WrongShape, KeyError, TypeError, ValueError) as error:
            raise self._api.wrong_reply(error) from error

    async def _answer(self, request: SlotCall[Any], caller: SlotCaller) -> Any:
        match request:
            case GetMemory():
                return await self._get(request.id, caller)
            case ListMemories():
                return await self._list(request, caller)
            case SearchMemories():
                return await self._search(request, caller)
            case GetMemoryStatus():
                return await self._status(caller)
            case StoreMemory():
                return await self._store(request, caller)
            case UpdateMemory():
                return await self._update(request, caller)
            case ForgetMemory():
                memory = await self._get(request.id, caller)
                require_may_forget(memory, caller)
                await self._api.send("DELETE", _path(memory.id))
                await self._pins.set(memory, False)
                return ForgottenMemory(memory.id, memory.namespace)
        return await self._transfer(request, caller)

    async def _transfer(self, request: SlotCall[Any], caller: SlotCaller) -> Any:
        if caller.session is not None:
            raise SlotError("memory", "denied", "An agent cannot export or import all memories")
        if isinstance(request, ExportMemories):
            query = {"limit": check_page(request.limit), "cursor": request.cursor}
            found = decode(MemoryRecords, await self._api.send("GET", f"{SLOT}/export", query=query))
            return replace(
                found, records=tuple({**one, "pinned": one.get("id") in self._pins.ids} for one in found.records)
            )
        assert isinstance(request, ImportMemories)
        body = {"records": list(request.records), "key": request.key}
        return decode(MemoryImport, await self._api.send("POST", f"{SLOT}/import", _given(body)))

    # Reading

    async def _get(self, id: str, caller: SlotCaller) -> Memory:
        memory = self._read(await self._api.send("GET", _path(id)))
        if not may_reach(memory.namespace, caller):
            raise not_found(id)
        return memory

    async def _list(self, request: ListMemories, caller: SlotCaller) -> MemoryPage:
        """A page may be shorter than wanted, because it has nothing of other agents."""
        if request.namespace is not None:
            check_namespace(request.namespace, caller)
        if request.pinned:
            return await self._list_pinned(request, caller)
        found = await self._api.send("GET", ENTRIES, query={**vars(request), "pinned": None})
        memories = (self._read(one) for one in found["memories"])
        cursor = found["cursor"]
        kept = (
            one for one in memories if may_reach(one.namespace, caller) and not (one.pinned and request.pinned is False)
        )
        return MemoryPage(tuple(kept), None if cursor is None else str(cursor))

    async def _list_pinned(self, request: ListMemories, caller: SlotCaller) -> MemoryPage:
        """On one page: there are few. What the neighbour has forgotten or changed is not among them."""
        limit, found = check_page(request.limit), list[Memory]()
        for id in self._pins.ids:
            try:
                memory = await self._get(id, caller)
            except SlotError as error:
                if error.problem != "not-found":
                    raise
                continue
            if memory.pinned and request.namespace in (None, memory.namespace):
                found.append(memory)
        return MemoryPage(tuple(found[:limit]), None)

    async def _search(self, request: SearchMemories, caller: SlotCaller) -> MemoryMatches:
        reach, limit = check_reach(request.namespaces, caller), check_page(request.limit, MAX_MATCHES)
        body = {"query": request.query, "namespaces": list(reach.names), "limit": MAX_MATCHES}
        found = await self._api.send("POST", f"{SLOT}/search", body)
        matches = (self._match(one) for one in found["matches"])
        kept = [one for one in matches if reach.includes(one.memory.namespace)]
        about = decode(_Found, {"by": found["by"], "waiting": found["waiting"]})
        return MemoryMatches(tuple(kept[:limit]), about.by, about.waiting)

    async def _status(self, caller: SlotCaller) -> MemoryStatus:
        found = decode(MemoryStatus, await self._api.send("GET", f"{SLOT}/status"))
        return replace(found, namespaces=tuple(one for one in found.namespaces if may_reach(one.name, caller)))

    # Changing

    async def _store(self, request: StoreMemory, caller: SlotCaller) -> Memory:
        """As a record, which also has where it comes from. The same key makes the same record."""
        check_memory_text(request.text)
        check_namespace(request.namespace, caller)
        if request.expires is not None:
            check_moment("expires", request.expires)
        if request.pinned:
            require_may_pin(caller)
        if caller.session is not None:
            status = decode(MemoryStatus, await self._api.send("GET", f"{SLOT}/status"))
            require_room(sum(one.memories for one in status.namespaces))
        id = new_memory_id() if request.key is None else _id_for(caller, request.key)
        record = {
            "id": id,
            "text": request.text,
            "namespace": request.namespace,
            "origin": encode(origin_for(request.origin, caller)),
            "expires": request.expires,
        }
        await self._api.send("POST", f"{SLOT}/import", {"records": [_given(record)]})
        stored = await self._get(id, caller)
        if request.pinned and stored.text == request.text:
            await self._pins.set(stored, True)
        return replace(stored, pinned=self._pins.holds(stored))

    async def _update(self, request: UpdateMemory, caller: SlotCaller) -> Memory:
        require_may_change(caller)
        before = await self._get(request.id, caller)
        is_pinned = before.pinned if request.pinned is None else request.pinned
        body = {name: value for name, value in vars(request).items() if name not in ("id", "pinned")}
        if request.expires is not None:
            check_moment("expires", request.expires)
            moment = datetime.fromtimestamp(request.expires, UTC).isoformat()
            body["expires"] = moment if request.expires else "never"
        after = before
        if any(body[name] is not None for name in ("text", "namespace", "expires")) or request.pinned is None:
            after = self._read(await self._api.send("PATCH", _path(request.id), _given(body)))
        if after.text != (before.text if request.text is None else request.text):
            is_pinned = False  # another text than the owner has seen
        await self._pins.set(after, is_pinned)
        return replace(after, pinned=self._pins.holds(after))

    def _read(self, value: object) -> Memory:
        memory = _memory(value)
        return replace(memory, pinned=self._pins.holds(memory))

    def _match(self, value: object) -> MemoryMatch:
        if not isinstance(value, dict):
            raise WrongShape("an object is missing")
        found = decode(_Match, {"score": value["score"], "words": value["words"]})
        return MemoryMatch(self._read(value["memory"]), found.score, found.words)


def _path(id: str) -> str:
    check_id(id)
    return f"{ENTRIES}/{quote(id, safe='')}"


def _id_for(caller: SlotCaller, key: str) -> str:
    return "m-" + hashlib.sha256(f"{caller.name}\n{key}".encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def _memory(value: object) -> Memory:
    """Whoever its owner is there, it is not ours: nothing of it is the owner's word here."""
    if not isinstance(value, dict):
        raise WrongShape("an object is missing")
    times = {name: datetime.fromisoformat(str(value[name])).timestamp() for name in _MOMENTS if value.get(name)}
    found = decode(Memory, {**value, **times})
    if len(found.text) > MAX_TEXT:
        raise WrongShape("a memory is longer than memories are")
    kind = "program" if found.origin.kind == "owner" else found.origin.kind
    return replace(found, origin=replace(found.origin, kind=kind), pinned=False)
