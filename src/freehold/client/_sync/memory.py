# made from _async/memory.py by python -m tools.generate
"""What agents remember: `home.memory`."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from freehold.client._sync.connection import SyncConnection
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


class SyncMemory:
    """The token needs the scope `memory`. A `key` makes a change happen once, however often it is sent."""

    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def list(
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
        return self._connection.get(ENTRIES, MemoryListPage, query)

    def search(self, query: str, *, namespaces: Sequence[str] = (), limit: int = 5) -> MemorySearch:
        """Memories that answer a question, by meaning and by exact words."""
        body = {"query": query, "namespaces": [*namespaces], "limit": limit}
        return self._connection.post("/v1/slots/memory/search", MemorySearch, body)

    def get(self, memory: str) -> MemoryInfo:
        return self._connection.get(_path(memory), MemoryInfo)

    def store(
        self, text: str, *, namespace: str = "shared", expires: datetime | None = None, key: str | None = None
    ) -> MemoryInfo:
        until = None if expires is None else expires.isoformat()
        body = {"text": text, "namespace": namespace, "expires": until, "key": key}
        return self._connection.post(ENTRIES, MemoryInfo, body)

    def update(self, memory: str, **fields: Any) -> MemoryInfo:
        """Set fields of a memory: text, namespace, expires (a time, or "never"). With `version`, only that version."""
        body = {name: one.isoformat() if isinstance(one, datetime) else one for name, one in fields.items()}
        return self._connection.patch(_path(memory), MemoryInfo, body)

    def forget(self, memory: str) -> None:
        """Remove a memory for good."""
        self._connection.delete(_path(memory), MemoryForgotten)

    def status(self) -> MemoryState:
        """The namespaces, and what makes meanings comparable."""
        return self._connection.get("/v1/slots/memory/status", MemoryState)

    def export(self) -> Iterator[dict[str, Any]]:
        """Every memory as a record."""
        cursor = None
        while True:
            page = self._connection.get("/v1/slots/memory/export", MemoryRecordPage, {"cursor": cursor})
            yield from page.records
            cursor = page.cursor
            if cursor is None:
                return

    def import_records(self, records: Sequence[Mapping[str, Any]]) -> MemoryImportInfo:
        """Store records, at most 200 at once: all of them, or none."""
        body = {"records": [dict(record) for record in records]}
        return self._connection.post("/v1/slots/memory/import", MemoryImportInfo, body)


def _path(memory: str) -> str:
    return f"{ENTRIES}/{quote_segment(memory)}"
