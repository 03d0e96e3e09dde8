"""Every recorded state of the persistent folders, with undo, redo, restore and revert."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from freehold.history.history import History as History
    from freehold.history.model import Author as Author
    from freehold.history.model import EntryRecord as EntryRecord
    from freehold.history.model import HistoryNotice as HistoryNotice
    from freehold.history.model import InterruptedRestore as InterruptedRestore
    from freehold.history.model import PathChange as PathChange
    from freehold.history.model import RestorePlan as RestorePlan
    from freehold.history.model import RestoreResult as RestoreResult
    from freehold.history.model import RestoreStep as RestoreStep
    from freehold.history.model import RevertConflict as RevertConflict
    from freehold.history.model import SnapshotResult as SnapshotResult
    from freehold.history.settings import HistorySettings as HistorySettings

_MODEL = (
    "Author",
    "EntryRecord",
    "HistoryNotice",
    "InterruptedRestore",
    "PathChange",
    "RestorePlan",
    "RestoreResult",
    "RestoreStep",
    "RevertConflict",
    "SnapshotResult",
)
_EXPORTS = {
    "History": "freehold.history.history",
    "HistorySettings": "freehold.history.settings",
    **dict.fromkeys(_MODEL, "freehold.history.model"),
}


def __getattr__(name: str) -> Any:
    """Loaded on first use: the gateway needs only `names` and not the store."""
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module 'freehold.history' has no attribute {name!r}; it has {', '.join(_EXPORTS)}")
    return getattr(import_module(module), name)
