"""What agents remember: `home.memory`."""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from freehold.client._async.connection import AsyncConnection
from freehold.client.memory_models import (
    MemoryForgotten,
    MemoryImportInfo,
    MemoryInfo,
    MemoryListPage,
    MemoryRecordPage,
    MemorySearch,
    MemoryState,
)
from freehold.client.topic_protocol import quote_segment

ENTRIES = "/v1/slots/memory/entries"


class AsyncMemory:
    """The token needs the scope `memory`. A `key` makes a change happen once, however often it is sent."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list(
        self,
        *,
        namespace: str | None = None,
        origin: str | None = None,
        pinned: bool | None = None,
        text: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> MemoryListPage:
        """One page of memories, last changed first."""
        query = {
            "namespace": namespace,
            "origin": origin,
            "pinned": None if pinned is None else str(pinned).lower(),
            "text": text,
            "limit": limit,
            "cursor": cursor,
        }
        return await self._connection.get(ENTRIES, MemoryListPage, query)

    async def search(self, query: str, *, namespaces: Sequence[str] = (), limit: int = 5) -> MemorySearch:
        """Memories that answer a question, by meaning and by exact words."""
        body = {"query": query, "namespaces": [*namespaces], "limit": limit}
        return await self._connection.post("/v1/slots/memory/search", MemorySearch, body)

    async def get(self, memory: str) -> MemoryInfo:
        return await self._connection.get(_path(memory), MemoryInfo)

    async def store(
        self, text: str, *, namespace: str = "shared", expires: datetime | None = None, key: str | None = None
    ) -> MemoryInfo:
        until = None if expires is None else expires.isoformat()
        body = {"text": text, "namespace": namespace, "expires": until, "key": key}
        return await self._connection.post(ENTRIES, MemoryInfo, body)

    async def update(self, memory: str, **fields: Any) -> MemoryInfo:
        """Set fields of a memory: text, namespace, expires (a time, or "never"). With `version`, only that version."""
        body = {name: one.isoformat() if isinstance(one, datetime) else one for name, one in fields.items()}
        return await self._connection.patch(_path(memory), MemoryInfo, body)

    async def forget(self, memory: str) -> None:
        """Remove a memory for good."""
        await self._connection.delete(_path(memory), MemoryForgotten)

    async def status(self) -> MemoryState:
        """The namespaces, and what makes meanings comparable."""
        return await self._connection.get("/v1/slots/memory/status", MemoryState)

    async def export(self) -> AsyncIterator[dict[str, Any]]:
        """Every memory as a record."""
        cursor = None
        while True:
            page = await self._connection.get("/v1/slots/memory/export", MemoryRecordPage, {"cursor": cursor})
            for record in page.records:
                yield record
            cursor = page.cursor
            if cursor is None:
                return

    async def import_records(self, records: Sequence[Mapping[str, Any]]) -> MemoryImportInfo:
        """Store records, at most 200 at once: all of them, or none."""
        body = {"records": [dict(record) for record in records]}
        return await self._connection.post("/v1/slots/memory/import", MemoryImportInfo, body)


def _path(memory: str) -> str:
    return f"{ENTRIES}/{quote_segment(memory)}"
