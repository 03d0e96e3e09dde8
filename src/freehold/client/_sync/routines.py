# made from _async/routines.py by python -m tools.generate
"""Work that begins without the owner: `home.routines`."""

from typing import Any

from freehold.client._sync.connection import SyncConnection
from freehold.client.routine_models import (
    RemovedRoutine,
    RoutineInfo,
    RoutineListPage,
    RoutineRunDetails,
    RoutineRunListPage,
    RoutineTimes,
    RoutineWebhook,
)
from freehold.client.topic_protocol import quote_segment

ROUTINES = "/v1/routines"


class SyncRoutines:
    """The token needs the scope `routines`; to add or run one also `prompt`, or `terminal` for a command."""

    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def list(self, *, after: str | None = None, limit: int = 50) -> RoutineListPage:
        """By name, those after a name."""
        return self._connection.get(ROUTINES, RoutineListPage, {"after": after, "limit": limit})

    def get(self, name: str) -> RoutineInfo:
        return self._connection.get(_path(name), RoutineInfo)

    def add(self, name: str, routine: dict[str, Any], *, replace: bool = False) -> RoutineInfo:
        """The keys of a routine are those of `[routines.<name>]` in freehold.toml."""
        body = {"name": name, "routine": routine, "replace": replace}
        return self._connection.post(ROUTINES, RoutineInfo, body)

    def plan(self, routine: dict[str, Any], *, count: int = 10) -> RoutineTimes:
        """When a routine would begin. Nothing is stored."""
        return self._connection.post(f"{ROUTINES}/plan", RoutineTimes, {"routine": routine, "count": count})

    def run(self, name: str, text: str | None = None) -> RoutineRunDetails:
        """Begin a run now. `text` is what it is told, as data."""
        return self._connection.post(f"{_path(name)}/run", RoutineRunDetails, {"text": text})

    def pause(self, name: str) -> RoutineInfo:
        return self._connection.post(f"{_path(name)}/pause", RoutineInfo, {})

    def resume(self, name: str) -> RoutineInfo:
        return self._connection.post(f"{_path(name)}/resume", RoutineInfo, {})

    def remove(self, name: str) -> RemovedRoutine:
        return self._connection.delete(_path(name), RemovedRoutine)

    def runs(self, name: str, *, before: int | None = None, limit: int = 30) -> RoutineRunListPage:
        """The newest first."""
        return self._connection.get(f"{_path(name)}/runs", RoutineRunListPage, {"before": before, "limit": limit})

    def get_run(self, name: str, run: str) -> RoutineRunDetails:
        return self._connection.get(f"{_path(name)}/runs/{quote_segment(run)}", RoutineRunDetails)

    def stop_run(self, name: str, run: str) -> RoutineRunDetails:
        """Idempotent."""
        return self._connection.post(f"{_path(name)}/runs/{quote_segment(run)}/stop", RoutineRunDetails, {})

    def create_webhook(self, name: str) -> RoutineWebhook:
        """A new secret for its signed requests. Needs the scope `admin`."""
        return self._connection.post(f"{_path(name)}/webhook", RoutineWebhook, {})


def _path(name: str) -> str:
    return f"{ROUTINES}/{quote_segment(name)}"
