"""Runs that a paired Freehold does: each is work that is sent to it, signed. It decides on agent, model and budget."""

from collections.abc import Awaitable
from typing import Any, TypeVar

from freehold.errors import FreeholdError
from freehold.slots.contract import SlotCaller
from freehold.slots.errors import SlotError, slot_unavailable
from freehold.slots.orchestrator.contract import ListRuns, ReadRun, Run, RunPage, SpawnRun
from freehold.slots.orchestrator.far_orchestrator import FarOrchestrator, OneRunCall
from freehold.slots.orchestrator.store import check_page, check_read, check_spawn
from freehold.slots.paired import PAIRED
from freehold.slots.settings import ExternalSettings

Reply = TypeVar("Reply")
_PROBLEMS: dict[str, Any] = {
    "not-found": "not-found",
    "permission": "denied",
    "invalid": "invalid",
    "conflict": "conflict",
    "too-many": "conflict",
}


class PairedRuns:
    """The mesh does it, once it runs."""

    def __init__(self, settings: ExternalSettings) -> None:
        settings.require_known("url", "privacy", "token")
        if settings.find("token") is not None:
            raise settings.wrong(
                f"{settings.where}.token is of no use: requests to a neighbour are signed", "Remove it"
            )
        self._name = settings.require("url")[len(PAIRED) :]
        self._paired = settings.paired

    async def open(self) -> None:
        """Nothing is kept open."""

    async def close(self) -> None:
        """Nothing is kept open."""

    async def health(self) -> None:
        await _as_slot(self._there().health())

    async def spawn(self, request: SpawnRun, caller: SlotCaller) -> Run:
        check_spawn(request)
        for name in ("entry", "folder", "agent", "model"):
            if getattr(request, name) is not None:
                raise SlotError(
                    "orchestrator",
                    "invalid",
                    f"A neighbour works in an empty folder with an agent that it chooses, so {name} cannot be given",
                    hint=f"Leave {name} out, and say in the prompt everything that the agent must know",
                )
        return await _as_slot(self._there().spawn(request, caller))

    async def get(self, id: str) -> Run:
        return await _as_slot(self._there().get(id))

    async def list(self, request: ListRuns) -> RunPage:
        check_page(request)
        return await _as_slot(self._there().list(request))

    async def ask_about(self, request: OneRunCall, caller: SlotCaller) -> Any:
        if isinstance(request, ReadRun):
            check_read(request)
        return await _as_slot(self._there().ask_about(request, caller))

    def wrong_reply(self, error: Exception) -> SlotError:
        return slot_unavailable("orchestrator", f"the reply of {self._name} is not valid: {str(error)[:300]}")

    def _there(self) -> FarOrchestrator:
        if self._paired.runs is None:
            raise slot_unavailable("orchestrator", "only a running Freehold whose mesh is on can send work")
        try:
            return self._paired.runs(self._name)
        except FreeholdError as error:
            raise slot_unavailable("orchestrator", error.message) from None


async def _as_slot(asking: Awaitable[Reply]) -> Reply:
    """Errors of the mesh as those of the slot."""
    try:
        return await asking
    except SlotError:
        raise
    except FreeholdError as error:
        problem = _PROBLEMS.get(error.kind.name, "unavailable")
        if problem == "unavailable":
            raise slot_unavailable("orchestrator", error.message) from error
        raise SlotError("orchestrator", problem, error.message, hint=error.next_step) from error
