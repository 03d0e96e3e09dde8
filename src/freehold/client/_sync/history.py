# made from _async/history.py by python -m tools.generate
"""The history of the files: `home.history`."""

import base64
from collections.abc import Mapping, Sequence
from typing import Literal

from freehold.client._sync.connection import SyncConnection
from freehold.client.models import (
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


class SyncHistory:
    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def log(self, *, path: str | None = None, before: int | None = None, limit: int = 50) -> tuple[HistoryEntry, ...]:
        """Entries, the newest first. `path` selects entries that changed it; `before` selects older entries."""
        query = {"path": path, "before": before, "limit": limit}
        return (self._connection.get("/v1/history", HistoryPage, query)).entries

    def changes(self, entry: int, *, limit: int = 1000) -> HistoryChanges:
        """The paths that one entry changed."""
        return self._connection.get(f"/v1/history/{entry}", HistoryChanges, {"limit": limit})

    def diff(self, entry: int, *, path: str | None = None) -> HistoryDiff:
        """The lines that one entry changed."""
        return self._connection.get(f"/v1/history/{entry}/diff", HistoryDiff, {"path": path})

    def compare(
        self,
        old: int | Literal["before", "good"] = "before",
        new: int | Literal["now"] = "now",
        *,
        path: str | None = None,
    ) -> HistoryComparison:
        """The difference between two states. `old` is an entry, the last good entry, or the entry before `new`."""
        return self._connection.get("/v1/history/compare", HistoryComparison, {"old": old, "new": new, "path": path})

    def mark_good(self, entry: int, *, good: bool = True) -> HistoryEntry:
        """Mark an entry as good, or remove the mark."""
        return self._connection.post(f"/v1/history/{entry}/good", HistoryEntry, {"good": good})

    def show(self, entry: int, path: str) -> bytes:
        """The content of a file in the state of an entry."""
        shown = self._connection.get(f"/v1/history/{entry}/file", ShownFile, {"path": path})
        return base64.b64decode(shown.base64 or "")

    def plan(
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
        return self._connection.post("/v1/history/plan", HistoryPlan, body)

    def undo(self, entry: int | None = None) -> HistoryOutcome:
        """Take back an entry and all later ones; by default the last entry. An undo can be undone."""
        return self._connection.post("/v1/history/undo", HistoryOutcome, {"entry": entry})

    def redo(self) -> HistoryOutcome:
        """Take back the last undo."""
        return self._connection.post("/v1/history/redo", HistoryOutcome, {})

    def restore(self, entry: int, paths: Sequence[str] = ()) -> HistoryOutcome:
        """Restore paths, or everything, to the state of an entry."""
        return self._connection.post("/v1/history/restore", HistoryOutcome, {"entry": entry, "paths": list(paths)})

    def revert(self, entry: int, choose: Mapping[str, Side] | None = None) -> HistoryOutcome:
        """Take back only the changes of one entry, and keep later changes."""
        return self._connection.post(
            "/v1/history/revert", HistoryOutcome, {"entry": entry, "choose": dict(choose or {})}
        )
