"""What agents remember: `/v1/slots/memory`."""

from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Query, Request
from pydantic import AwareDatetime, BaseModel, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import DIGITS, MAX_NUMBER, RecordBody, RequestBody, UrlFlag, UrlId
from freehold.gateway.moments import to_moment
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import delete, get, patch, post
from freehold.slots import SlotCaller
from freehold.slots.contract import MAX_KEY
from freehold.slots.memory.contract import (
    MAX_MATCHES,
    MAX_NAMESPACES,
    MAX_PAGE,
    MAX_QUERY,
    MAX_RECORDS,
    MAX_TEXT,
    SHARED,
    ExportMemories,
    ForgetMemory,
    GetMemory,
    GetMemoryStatus,
    ImportMemories,
    ListMemories,
    Memory,
    OriginKind,
    SearchMemories,
    StoreMemory,
    UpdateMemory,
)

MAX_IMPORT = 16 * 1024 * 1024
MAX_MOMENT = 40
Namespace = Annotated[str, Field(min_length=1, max_length=70, description="shared, project:NAME or agent:NAME.")]
Key = Annotated[
    str | None,
    Field(min_length=1, max_length=MAX_KEY, description="The same request with the same key has its effect once."),
]


def _is_text(value: object) -> object:
    if not isinstance(value, str) or len(value) > MAX_MOMENT:
        raise PydanticCustomError("moment", "must be a time such as 2026-01-31T12:00:00Z")
    return value


Moment = Annotated[
    AwareDatetime, Field(strict=False, json_schema_extra={"maxLength": MAX_MOMENT}), BeforeValidator(_is_text)
]
Limit = Annotated[int, Query(ge=1, le=MAX_PAGE), DIGITS]


class MemoryOriginBody(BaseModel):
    """Where a memory comes from. Only what the `owner` wrote or corrected is told to agents as the owner's word."""

    kind: OriginKind
    session: str | None
    turn: int | None
    note: str | None


class MemoryBody(BaseModel):
    """One thing that is remembered. `used`: how often an agent was given it. Pinned ones begin every new session."""

    id: str
    namespace: str
    text: str
    origin: MemoryOriginBody
    created: datetime
    created_by: str
    updated: datetime
    expires: datetime | None
    pinned: bool
    used: int
    last_used: datetime | None
    version: int


class MemoryPageBody(BaseModel):
    """Memories, last changed first. Send `cursor` to get the next page; null on the last one."""

    memories: list[MemoryBody]
    cursor: str | None


class MemoryMatchBody(BaseModel):
    memory: MemoryBody
    score: float
    words: list[str] = Field(description="Exact words of the question that it has.")


class MemoryMatchesBody(BaseModel):
    """The best first. `by` says whether meanings were compared, or only words because meanings could not be had."""

    matches: list[MemoryMatchBody]
    by: Literal["meaning", "words"]
    waiting: int = Field(description="How many memories can be found only by their words so far.")


class MemoryNamespaceBody(BaseModel):
    name: str
    memories: int


class MemoryStatusBody(BaseModel):
    namespaces: list[MemoryNamespaceBody]
    embedding: str = Field(description="What makes meanings comparable.")
    waiting: int
    problem: str | None = Field(description="Why meanings cannot be compared now; null when they can.")


class ForgottenMemoryBody(BaseModel):
    id: str


class MemoryRecordsBody(BaseModel):
    records: list[dict[str, Any]]
    cursor: str | None


class MemoryImportBody(BaseModel):
    created: int
    replaced: int
    kept: int = Field(description="Memories that are as new here as their record, or newer.")


class StoreMemoryBody(RequestBody):
    text: str = Field(min_length=1, max_length=MAX_TEXT)
    namespace: Namespace = SHARED
    expires: Moment | None = Field(default=None, description="When it is forgotten.")
    pinned: bool = Field(default=False, description="Given to every new session. Only for the owner.")
    key: Key = None


class UpdateMemoryBody(RequestBody):
    """Only the fields that are given are set."""

    text: str | None = Field(default=None, min_length=1, max_length=MAX_TEXT)
    namespace: Namespace | None = None
    expires: Literal["never"] | Moment | None = None
    pinned: bool | None = None
    version: int | None = Field(default=None, ge=1, le=MAX_NUMBER, description="Refused if it has another version.")
    key: Key = None


class SearchMemoriesBody(RequestBody):
    query: str = Field(min_length=1, max_length=MAX_QUERY, description="A question, or some words.")
    namespaces: list[Namespace] = Field(default=[], max_length=MAX_NAMESPACES, description="Default: all.")
    limit: int = Field(default=5, ge=1, le=MAX_MATCHES)


class ImportMemoriesBody(RequestBody):
    records: list[RecordBody] = Field(max_length=MAX_RECORDS)
    key: Key = None


class MemoryRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._slot = context.services.slots.get("memory")

    @get("/v1/slots/memory/entries", scope="memory")
    async def list_memories(
        self,
        request: Request,
        namespace: Annotated[str | None, Query(min_length=1, max_length=70)] = None,
        origin: OriginKind | None = None,
        pinned: UrlFlag | None = None,
        text: Annotated[str | None, Query(max_length=200)] = None,
        limit: Limit = 50,
        cursor: Annotated[str | None, Query(max_length=400)] = None,
    ) -> MemoryPageBody:
        """Memories that match everything that is given."""
        wanted = ListMemories(namespace, origin, pinned, text, limit, cursor)
        page = await self._slot.call(wanted, _caller(request))
        return MemoryPageBody(memories=[memory_body(one) for one in page.memories], cursor=page.cursor)

    @post("/v1/slots/memory/entries", status_code=201, scope="memory")
    async def store_memory(self, body: StoreMemoryBody, request: Request) -> MemoryBody:
        expires = None if body.expires is None else body.expires.timestamp()
        wanted = StoreMemory(body.text, body.namespace, None, expires, body.pinned, body.key)
        return memory_body(await self._slot.call(wanted, _caller(request)))

    @get("/v1/slots/memory/entries/{memory}", scope="memory")
    async def get_memory(self, memory: UrlId, request: Request) -> MemoryBody:
        return memory_body(await self._slot.call(GetMemory(memory), _caller(request)))

    @patch("/v1/slots/memory/entries/{memory}", scope="memory")
    async def update_memory(self, memory: UrlId, body: UpdateMemoryBody, request: Request) -> MemoryBody:
        """Correct a memory, move it, pin it, or say when it is forgotten."""
        expires = 0.0 if body.expires == "never" else None if body.expires is None else body.expires.timestamp()
        wanted = UpdateMemory(memory, body.text, body.namespace, expires, body.pinned, body.version, body.key)
        return memory_body(await self._slot.call(wanted, _caller(request)))

    @delete("/v1/slots/memory/entries/{memory}", scope="memory")
    async def forget_memory(self, memory: UrlId, request: Request) -> ForgottenMemoryBody:
        """Remove a memory for good."""
        return ForgottenMemoryBody(id=(await self._slot.call(ForgetMemory(memory), _caller(request))).id)

    @post("/v1/slots/memory/search", scope="memory")
    async def search_memories(self, body: SearchMemoriesBody, request: Request) -> MemoryMatchesBody:
        """Memories that answer a question, by meaning and by exact words."""
        wanted = SearchMemories(body.query, tuple(body.namespaces), body.limit)
        found = await self._slot.call(wanted, _caller(request))
        return MemoryMatchesBody(
            matches=[
                MemoryMatchBody(memory=memory_body(one.memory), score=one.score, words=list(one.words))
                for one in found.matches
            ],
            by=found.by,
            waiting=found.waiting,
        )

    @get("/v1/slots/memory/status", scope="memory")
    async def get_memory_status(self, request: Request) -> MemoryStatusBody:
        """The namespaces with their number of memories, and what makes meanings comparable."""
        found = await self._slot.call(GetMemoryStatus(), _caller(request))
        return MemoryStatusBody(
            namespaces=[MemoryNamespaceBody(name=one.name, memories=one.memories) for one in found.namespaces],
            embedding=found.embedding,
            waiting=found.waiting,
            problem=found.problem,
        )

    @get("/v1/slots/memory/export", scope="memory")
    async def export_memories(
        self,
        request: Request,
        limit: Limit = MAX_RECORDS,
        cursor: Annotated[str | None, Query(max_length=64)] = None,
    ) -> MemoryRecordsBody:
        """All memories in the order of their ids, as records."""
        found = await self._slot.call(ExportMemories(limit, cursor), _caller(request))
        return MemoryRecordsBody(records=[dict(one) for one in found.records], cursor=found.cursor)

    @post("/v1/slots/memory/import", scope="memory", max_body=MAX_IMPORT)
    async def import_memories(self, body: ImportMemoriesBody, request: Request) -> MemoryImportBody:
        """Store records of an export: all of them, or none."""
        done = await self._slot.call(ImportMemories(tuple(body.records), body.key), _caller(request))
        return MemoryImportBody(created=done.created, replaced=done.replaced, kept=done.kept)


def memory_body(memory: Memory) -> MemoryBody:
    times = {name: getattr(memory, name) for name in ("created", "updated", "expires", "last_used")}
    moments = {name: None if at is None else to_moment(at) for name, at in times.items()}
    return MemoryBody.model_validate({**vars(memory), **moments, "origin": vars(memory.origin)})


def _caller(request: Request) -> SlotCaller:
    return SlotCaller(principal_of(request.scope).who)
