"""Every state of the kept folders, and the way back to each."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from freehold.history.history import History as History
    from freehold.history.model import Change as Change
    from freehold.history.model import Conflict as Conflict
    from freehold.history.model import Entry as Entry
    from freehold.history.model import Interrupted as Interrupted
    from freehold.history.model import Mark as Mark
    from freehold.history.model import Notice as Notice
    from freehold.history.model import Outcome as Outcome
    from freehold.history.model import Plan as Plan
    from freehold.history.model import Step as Step
    from freehold.history.model import Who as Who
    from freehold.history.settings import Settings as Settings

_MODEL = ("Change", "Conflict", "Entry", "Interrupted", "Mark", "Notice", "Outcome", "Plan", "Step", "Who")
_EXPORTS = {
    "History": "freehold.history.history",
    "Settings": "freehold.history.settings",
    **dict.fromkeys(_MODEL, "freehold.history.model"),
}


def __getattr__(name: str) -> Any:
    """Load on first use: the gateway needs only how names are spelled, and not the store."""
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module 'freehold.history' has no attribute {name!r}; it has {', '.join(_EXPORTS)}")
    return getattr(import_module(module), name)
