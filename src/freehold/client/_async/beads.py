"""Work items: `home.beads`."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from freehold.client._async.connection import AsyncConnection
from freehold.client.slot_models import (
    BeadFileChange,
    BeadImportInfo,
    BeadInfo,
    BeadListPage,
    BeadRecordPage,
    BeadView,
    BeadWork,
)
from freehold.client.topic_protocol import quote_segment

ITEMS = "/v1/slots/beads/items"


class AsyncBeads:
    """The token needs the scope `beads`. A `key` makes a change happen once, however often it is sent."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def list(
        self,
        *,
        status: str | None = None,
        ready: bool = False,
        kind: str | None = None,
        label: str | None = None,
        holder: str | None = None,
        parent: str | None = None,
        text: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> BeadListPage:
        """One page of items, by priority and age, closed ones the last first. `ready`: open and not blocked."""
        query = {
            "status": status,
            "ready": "true" if ready else None,
            "kind": kind,
            "label": label,
            "holder": holder,
            "parent": parent,
            "text": text,
            "limit": limit,
            "cursor": cursor,
        }
        return await self._connection.get(ITEMS, BeadListPage, query)

    async def get(self, bead: str) -> BeadView:
        """One item with its comments and its history."""
        return await self._connection.get(_path(bead), BeadView)

    async def changes(self, bead: str) -> tuple[BeadFileChange, ...]:
        """What the sessions that worked on an item changed in the files, the newest first."""
        return await self._connection.get(f"{_path(bead)}/changes", tuple[BeadFileChange, ...])

    async def create(
        self,
        title: str,
        *,
        description: str = "",
        kind: str = "task",
        priority: int = 2,
        labels: Sequence[str] = (),
        parent: str | None = None,
        needs: Sequence[str] = (),
        key: str | None = None,
    ) -> BeadInfo:
        body = {
            "title": title,
            "description": description,
            "kind": kind,
            "priority": priority,
            "labels": [*labels],
            "parent": parent,
            "needs": [*needs],
            "key": key,
        }
        return await self._connection.post(ITEMS, BeadInfo, body)

    async def update(self, bead: str, **fields: Any) -> BeadInfo:
        """Set fields of an item: title, description, kind, priority, labels, parent. With `version`, only that version."""
        return await self._connection.patch(_path(bead), BeadInfo, fields)

    async def claim(self, bead: str, *, key: str | None = None) -> BeadInfo:
        """Become the holder. Raises `beads.claimed` when another one holds it."""
        return await self._connection.post(f"{_path(bead)}/claim", BeadInfo, {"key": key})

    async def release(self, bead: str, *, key: str | None = None) -> BeadInfo:
        return await self._connection.post(f"{_path(bead)}/release", BeadInfo, {"key": key})

    async def close(self, bead: str, reason: str, *, evidence: str | None = None, key: str | None = None) -> BeadInfo:
        body = {"reason": reason, "evidence": evidence, "key": key}
        return await self._connection.post(f"{_path(bead)}/close", BeadInfo, body)

    async def reopen(self, bead: str, *, key: str | None = None) -> BeadInfo:
        return await self._connection.post(f"{_path(bead)}/reopen", BeadInfo, {"key": key})

    async def comment(self, bead: str, text: str, *, key: str | None = None) -> BeadInfo:
        return await self._connection.post(f"{_path(bead)}/comments", BeadInfo, {"text": text, "key": key})

    async def add_need(self, bead: str, needs: str) -> BeadInfo:
        """The item waits until the other one is closed."""
        return await self._connection.post(f"{_path(bead)}/needs", BeadInfo, {"needs": needs})

    async def remove_need(self, bead: str, needs: str) -> BeadInfo:
        return await self._connection.delete(f"{_path(bead)}/needs/{quote_segment(needs)}", BeadInfo)

    async def work(self, bead: str, *, agent: str | None = None, model: str | None = None) -> BeadWork:
        """Start a session that works on the item. The token needs the scope `prompt` as well."""
        return await self._connection.post(f"{_path(bead)}/work", BeadWork, {"agent": agent, "model": model})

    async def export(self) -> AsyncIterator[dict[str, Any]]:
        """Every item as a record of beads' own JSON lines."""
        cursor = None
        while True:
            page = await self._connection.get("/v1/slots/beads/export", BeadRecordPage, {"cursor": cursor})
            for record in page.records:
                yield record
            cursor = page.cursor
            if cursor is None:
                return

    async def import_records(self, records: Sequence[Mapping[str, Any]]) -> BeadImportInfo:
        """Store records, at most 200 at once: all of them, or none."""
        body = {"records": [dict(record) for record in records]}
        return await self._connection.post("/v1/slots/beads/import", BeadImportInfo, body)


def _path(bead: str) -> str:
    return f"{ITEMS}/{quote_segment(bead)}"
