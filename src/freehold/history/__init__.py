"""Every state of the kept folders, and the way back to each."""

from freehold.history.history import History
from freehold.history.model import Change, Conflict, Entry, Interrupted, Mark, Notice, Outcome, Plan, Step, Who
from freehold.history.settings import Settings

__all__ = [
    "Change",
    "Conflict",
    "Entry",
    "History",
    "Interrupted",
    "Mark",
    "Notice",
    "Outcome",
    "Plan",
    "Settings",
    "Step",
    "Who",
]
