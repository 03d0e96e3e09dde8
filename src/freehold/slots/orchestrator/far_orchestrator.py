"""The orchestrator of another Freehold, whichever way it is asked."""

from typing import Any, Protocol

from freehold.slots.contract import SlotCaller
from freehold.slots.orchestrator.contract import (
    GetChanges,
    ListRuns,
    ReadRun,
    Run,
    RunPage,
    SpawnRun,
    TakeChanges,
    TerminateRun,
)

OneRunCall = TerminateRun | TakeChanges | ReadRun | GetChanges
"""Calls about one run. Their replies are those of the contract."""


class FarOrchestrator(Protocol):
    """All errors are `SlotError`. It knows nothing of who here may see which run: that was decided before."""

    async def open(self) -> None:
        """Idempotent."""
        ...

    async def close(self) -> None:
        """Idempotent."""
        ...

    async def health(self) -> None: ...

    async def spawn(self, request: SpawnRun, caller: SlotCaller) -> Run:
        """Begins a run once for each caller and key."""
        ...

    async def get(self, id: str) -> Run: ...

    async def list(self, request: ListRuns) -> RunPage: ...

    async def ask_about(self, request: OneRunCall, caller: SlotCaller) -> Any: ...

    def wrong_reply(self, error: Exception) -> Exception:
        """For an answer that does not have the shape that it should have."""
        ...
