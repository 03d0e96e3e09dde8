"""The replies of the memory slot as frozen objects."""

from datetime import datetime
from typing import Any

from freehold.client.models import ApiModel


class MemoryOriginInfo(ApiModel):
    kind: str
    session: str | None
    turn: int | None
    note: str | None


class MemoryInfo(ApiModel):
    """One thing that is remembered. `used`: how often an agent was given it."""

    id: str
    namespace: str
    text: str
    origin: MemoryOriginInfo
    created: datetime
    created_by: str
    updated: datetime
    expires: datetime | None
    pinned: bool
    used: int
    last_used: datetime | None
    version: int


class MemoryListPage(ApiModel):
    """Pass `cursor` to get the next page; None on the last one."""

    memories: tuple[MemoryInfo, ...]
    cursor: str | None


class MemoryHit(ApiModel):
    memory: MemoryInfo
    score: float
    words: tuple[str, ...]


class MemorySearch(ApiModel):
    """The best first. `by`: "meaning", or "words" when meanings could not be compared."""

    matches: tuple[MemoryHit, ...]
    by: str
    waiting: int


class MemoryNamespaceInfo(ApiModel):
    name: str
    memories: int


class MemoryState(ApiModel):
    namespaces: tuple[MemoryNamespaceInfo, ...]
    embedding: str
    waiting: int
    problem: str | None


class MemoryForgotten(ApiModel):
    id: str


class MemoryRecordPage(ApiModel):
    records: tuple[dict[str, Any], ...]
    cursor: str | None


class MemoryImportInfo(ApiModel):
    created: int
    replaced: int
    kept: int
