"""Every state of the files, and the way back: `home.history`."""

import base64
from collections.abc import Mapping, Sequence
from typing import Literal

from freehold.client._async.connection import AsyncConnection
from freehold.client.answers import (
    HistoryChanges,
    HistoryComparison,
    HistoryDiff,
    HistoryEntry,
    HistoryOutcome,
    HistoryPage,
    HistoryPlan,
    ShownFile,
)

Side = Literal["old", "mine"]


class AsyncHistory:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def log(
        self, *, path: str | None = None, before: int | None = None, limit: int = 50
    ) -> tuple[HistoryEntry, ...]:
        """Entries, the newest first; those that touched `path` when it is given; older than `before`."""
        query = {"path": path, "before": before, "limit": limit}
        return (await self._connection.get("/v1/history", HistoryPage, query)).entries

    async def changes(self, entry: int, *, limit: int = 1000) -> HistoryChanges:
        """What one entry changed, path by path."""
        return await self._connection.get(f"/v1/history/{entry}", HistoryChanges, {"limit": limit})

    async def diff(self, entry: int, *, path: str | None = None) -> HistoryDiff:
        """What one entry changed, line by line."""
        return await self._connection.get(f"/v1/history/{entry}/diff", HistoryDiff, {"path": path})

    async def compare(
        self,
        old: int | Literal["before", "good"] = "before",
        new: int | Literal["now"] = "now",
        *,
        path: str | None = None,
    ) -> HistoryComparison:
        """What differs between two states: an entry, the last known good one or the one before `new`; and an entry or now."""
        return await self._connection.get(
            "/v1/history/compare", HistoryComparison, {"old": old, "new": new, "path": path}
        )

    async def mark_good(self, entry: int, *, good: bool = True) -> HistoryEntry:
        """Mark an entry as known good, or take the mark away."""
        return await self._connection.post(f"/v1/history/{entry}/good", HistoryEntry, {"good": good})

    async def show(self, entry: int, path: str) -> bytes:
        """A file as it was."""
        shown = await self._connection.get(f"/v1/history/{entry}/file", ShownFile, {"path": path})
        return base64.b64decode(shown.base64 or "")

    async def plan(
        self,
        action: Literal["undo", "redo", "restore", "revert"],
        *,
        entry: int | None = None,
        paths: Sequence[str] | None = None,
        choose: Mapping[str, Side] | None = None,
    ) -> HistoryPlan:
        """What an action would do to every path. Changes nothing."""
        said = {"entry": entry, "paths": None if paths is None else list(paths), "choose": choose}
        body = {"action": action, **{name: value for name, value in said.items() if value is not None}}
        return await self._connection.post("/v1/history/plan", HistoryPlan, body)

    async def undo(self, entry: int | None = None) -> HistoryOutcome:
        """Go back to before an entry, or before the last. Undoing can itself be undone."""
        return await self._connection.post("/v1/history/undo", HistoryOutcome, {"entry": entry})

    async def redo(self) -> HistoryOutcome:
        """Take back the last undo."""
        return await self._connection.post("/v1/history/redo", HistoryOutcome, {})

    async def restore(self, entry: int, paths: Sequence[str] = ()) -> HistoryOutcome:
        """Bring back paths, or everything, as they were in an entry."""
        return await self._connection.post(
            "/v1/history/restore", HistoryOutcome, {"entry": entry, "paths": list(paths)}
        )

    async def revert(self, entry: int, choose: Mapping[str, Side] | None = None) -> HistoryOutcome:
        """Take back only what one entry changed, and keep what came after."""
        return await self._connection.post(
            "/v1/history/revert", HistoryOutcome, {"entry": entry, "choose": dict(choose or {})}
        )
