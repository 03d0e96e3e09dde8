"""The history of the files: `home.history`."""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Literal
from urllib.parse import quote

from freehold.client._async.connection import AsyncConnection
from freehold.client.models import (
    HistoryChanges,
    HistoryComparison,
    HistoryDiff,
    HistoryEntry,
    HistoryOutcome,
    HistoryPage,
    HistoryPlan,
    RestoreCancelled,
    RestoreState,
    ShownFile,
)

Side = Literal["old", "mine"]


class AsyncHistory:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def log(
        self, *, path: str | None = None, before: int | None = None, limit: int = 50
    ) -> tuple[HistoryEntry, ...]:
        """Entries, the newest first. `path` selects entries that changed it; `before` selects older entries."""
        query = {"path": path, "before": before, "limit": limit}
        return (await self._connection.get("/v1/history", HistoryPage, query)).entries

    async def changes(self, entry: int, *, limit: int = 1000) -> HistoryChanges:
        """The paths that one entry changed."""
        return await self._connection.get(f"/v1/history/{entry}", HistoryChanges, {"limit": limit})

    async def diff(self, entry: int, *, path: str | None = None) -> HistoryDiff:
        """The lines that one entry changed."""
        return await self._connection.get(f"/v1/history/{entry}/diff", HistoryDiff, {"path": path})

    async def compare(
        self,
        old: int | Literal["before", "good"] = "before",
        new: int | Literal["now"] = "now",
        *,
        path: str | None = None,
    ) -> HistoryComparison:
        """The difference between two states. `old` is an entry, the last good entry, or the entry before `new`."""
        return await self._connection.get(
            "/v1/history/compare", HistoryComparison, {"old": old, "new": new, "path": path}
        )

    async def mark_good(self, entry: int, *, good: bool = True) -> HistoryEntry:
        """Mark an entry as good, or remove the mark."""
        return await self._connection.post(f"/v1/history/{entry}/good", HistoryEntry, {"good": good})

    async def show(self, entry: int, path: str) -> bytes:
        """The content of a file in the state of an entry."""
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
        """What an action would do to each path. Changes nothing."""
        options = {"entry": entry, "paths": None if paths is None else list(paths), "choose": choose}
        body = {"action": action, **{name: value for name, value in options.items() if value is not None}}
        return await self._connection.post("/v1/history/plan", HistoryPlan, body)

    async def undo(self, entry: int | None = None, *, restore_id: str | None = None) -> HistoryOutcome:
        """Take back an entry and all later ones; by default the last entry. An undo can be undone.

        `restore_id` is a name of your choice, new for each call, with which `restores` and `cancel_restore` find it.
        """
        return await self._change("undo", {"entry": entry}, restore_id)

    async def redo(self, *, restore_id: str | None = None) -> HistoryOutcome:
        """Take back the last undo."""
        return await self._change("redo", {}, restore_id)

    async def restore(self, entry: int, paths: Sequence[str] = (), *, restore_id: str | None = None) -> HistoryOutcome:
        """Restore paths, or everything, to the state of an entry."""
        return await self._change("restore", {"entry": entry, "paths": list(paths)}, restore_id)

    async def revert(
        self,
        entry: int,
        choose: Mapping[str, Side] | None = None,
        *,
        since: int | None = None,
        restore_id: str | None = None,
    ) -> HistoryOutcome:
        """Take back only the changes of one entry, or all after `since` up to it, and keep later changes."""
        body = {"entry": entry, "since": since, "choose": dict(choose or {})}
        return await self._change("revert", body, restore_id)

    async def restores(self) -> tuple[RestoreState, ...]:
        """How far each undo, redo, restore, revert and rewind is that runs or waits, the oldest first."""
        return tuple(await self._connection.get("/v1/history/restores", list[RestoreState]))

    async def cancel_restore(self, restore_id: str) -> Literal["cancelled", "too-late", "not-found"]:
        """Cancel one of them, unless it changes files already. Whoever asked for it gets the error `history.cancelled`."""
        path = f"/v1/history/restores/{quote(restore_id, safe='')}/cancel"
        return (await self._connection.post(path, RestoreCancelled, {})).outcome

    async def _change(self, verb: str, body: dict[str, Any], restore_id: str | None) -> HistoryOutcome:
        named = body if restore_id is None else {**body, "restore_id": restore_id}
        return await self._connection.post(f"/v1/history/{verb}", HistoryOutcome, named)
