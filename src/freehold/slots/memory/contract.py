"""The memory slot: its entries, and the calls that every implementation answers in the same way."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

from freehold.slots.contract import Record, SlotCall, SlotContract, SlotTransfer, SlotWrite
from freehold.strict_json import EpochSeconds
from freehold.timeline.event import Json

OriginKind = Literal["owner", "program", "agent", "tool", "web"]
ORIGINS: tuple[OriginKind, ...] = get_args(OriginKind)
SHARED = "shared"

MAX_TEXT = 8_000
MAX_NOTE = 500
MAX_QUERY = 1_000
MAX_NAMESPACES = 20
MAX_PAGE = 200
MAX_MATCHES = 50
MAX_RECORDS = 200
MAX_ENTRIES = 200_000
"""How many entries agents can fill the slot with."""


@dataclass(frozen=True)
class MemoryOrigin:
    """Where a memory comes from. Only what the `owner` wrote or corrected is the owner's word.

    `program`: a program with an API token. `agent`: an agent concluded it. `tool` and `web`: an agent had read the
    output of a tool, or a page, when it stored it. `session` and `turn` are the conversation it was stored in.
    """

    kind: OriginKind
    session: str | None = None
    turn: int | None = None
    note: str | None = None


@dataclass(frozen=True)
class Memory:
    """One thing that is remembered. `used`: how often an agent was given it. Times are seconds since 1970."""

    id: str
    namespace: str
    text: str
    origin: MemoryOrigin
    created: EpochSeconds
    created_by: str
    updated: EpochSeconds
    expires: EpochSeconds | None
    pinned: bool
    used: int
    last_used: EpochSeconds | None
    version: int


@dataclass(frozen=True)
class MemoryPage:
    """Memories, last changed first. `cursor` gets the next page; None on the last one."""

    memories: tuple[Memory, ...]
    cursor: str | None


@dataclass(frozen=True)
class MemoryMatch:
    """`words`: exact words of the question that it has."""

    memory: Memory
    score: float
    words: tuple[str, ...]


@dataclass(frozen=True)
class MemoryMatches:
    """The best first. `by`: whether meanings were compared, or only words because meanings could not be had.

    `waiting`: how many memories can be found only by their words so far.
    """

    matches: tuple[MemoryMatch, ...]
    by: Literal["meaning", "words"]
    waiting: int


@dataclass(frozen=True)
class MemoryNamespace:
    name: str
    memories: int


@dataclass(frozen=True)
class MemoryStatus:
    """What the slot holds. `embedding`: what makes meanings comparable. `problem`: why it cannot, if so."""

    namespaces: tuple[MemoryNamespace, ...]
    embedding: str
    waiting: int
    problem: str | None


@dataclass(frozen=True)
class ForgottenMemory:
    id: str
    namespace: str


@dataclass(frozen=True)
class MemoryRecords:
    """Memories as JSON objects, in the order of their ids."""

    records: tuple[Record, ...]
    cursor: str | None


@dataclass(frozen=True)
class MemoryImport:
    """What an import did. A memory that is newer here than its record is kept."""

    created: int
    replaced: int
    kept: int


class MemoryWrite(SlotWrite[Memory]):
    """A change of one memory. The timeline records its id, namespace and origin."""

    identifiers: ClassVar[frozenset[str]] = frozenset({"id", "key", "namespace"})

    def describe(self, reply: Any) -> Mapping[str, Json]:
        assert isinstance(reply, Memory)
        facts: dict[str, Json] = {
            "id": reply.id,
            "namespace": reply.namespace,
            "origin": reply.origin.kind,
            "version": reply.version,
        }
        return {**facts, "pinned": True} if reply.pinned else facts


@dataclass(frozen=True)
class GetMemory(SlotCall[Memory]):
    method: ClassVar[str] = "get"
    id: str


@dataclass(frozen=True)
class ListMemories(SlotCall[MemoryPage]):
    """Memories that match everything that is given. `text` is part of the memory."""

    method: ClassVar[str] = "list"
    namespace: str | None = None
    origin: OriginKind | None = None
    pinned: bool | None = None
    text: str | None = None
    limit: int = 50
    cursor: str | None = None


@dataclass(frozen=True)
class SearchMemories(SlotCall[MemoryMatches]):
    """Memories that answer a question, in these namespaces or in all that the caller may read.

    A session that searches uses what it finds.
    """

    method: ClassVar[str] = "search"
    query: str
    namespaces: tuple[str, ...] = ()
    limit: int = 5


@dataclass(frozen=True)
class GetMemoryStatus(SlotCall[MemoryStatus]):
    method: ClassVar[str] = "status"


@dataclass(frozen=True)
class StoreMemory(MemoryWrite):
    """`expires`: seconds since 1970, after which it is forgotten. Only the owner can pin."""

    method: ClassVar[str] = "store"
    event: ClassVar[str] = "memory.stored"
    text: str
    namespace: str = SHARED
    origin: MemoryOrigin | None = None
    expires: EpochSeconds | None = None
    pinned: bool = False
    key: str | None = None


@dataclass(frozen=True)
class UpdateMemory(MemoryWrite):
    """Sets the fields that are given; `expires` 0 means never. What the owner corrects becomes the owner's word.

    With a `version`, a memory that has changed since then is not touched.
    """

    method: ClassVar[str] = "update"
    event: ClassVar[str] = "memory.updated"
    id: str
    text: str | None = None
    namespace: str | None = None
    expires: EpochSeconds | None = None
    pinned: bool | None = None
    version: int | None = None
    key: str | None = None


@dataclass(frozen=True)
class ForgetMemory(SlotWrite[ForgottenMemory]):
    """Removes it for good. An agent forgets only what an agent has stored, and nothing that is pinned."""

    identifiers: ClassVar[frozenset[str]] = frozenset({"id", "key"})
    method: ClassVar[str] = "forget"
    event: ClassVar[str] = "memory.forgotten"
    id: str
    key: str | None = None

    def describe(self, reply: Any) -> Mapping[str, Json]:
        assert isinstance(reply, ForgottenMemory)
        return {"id": reply.id, "namespace": reply.namespace}


@dataclass(frozen=True)
class ExportMemories(SlotCall[MemoryRecords]):
    method: ClassVar[str] = "export"
    limit: int = MAX_RECORDS
    cursor: str | None = None


@dataclass(frozen=True)
class ImportMemories(SlotWrite[MemoryImport]):
    """Records of an export. All of them are stored, or none. Idempotent."""

    record_identifiers: ClassVar[frozenset[str]] = frozenset({"id", "namespace", "kind", "session"})
    method: ClassVar[str] = "import"
    event: ClassVar[str] = "memory.imported"
    records: tuple[Record, ...]
    key: str | None = None

    def describe(self, reply: Any) -> Mapping[str, Json]:
        assert isinstance(reply, MemoryImport)
        return {"created": reply.created, "replaced": reply.replaced, "kept": reply.kept}


CONTRACT = SlotContract(
    "memory",
    1,
    (
        GetMemory,
        ListMemories,
        SearchMemories,
        GetMemoryStatus,
        StoreMemory,
        UpdateMemory,
        ForgetMemory,
        ExportMemories,
        ImportMemories,
    ),
    SlotTransfer(MAX_RECORDS, lambda cursor: ExportMemories(cursor=cursor), lambda records: ImportMemories(records)),
)
