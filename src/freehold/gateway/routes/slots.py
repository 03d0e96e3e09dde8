"""The slots of this Freehold: `/v1/slots`."""

from datetime import datetime
from typing import Literal

from pydantic import BaseModel, Field

from freehold.gateway.context import RouteContext
from freehold.gateway.moments import to_moment
from freehold.gateway.routing import get
from freehold.manifest.sections.slots import PrivacyMode, SlotMode
from freehold.slots import Slot
from freehold.slots.host import read_section


class SlotBody(BaseModel):
    """One slot. `implementation` is what keeps it, and `error` why it cannot be reached."""

    name: str
    mode: SlotMode
    implementation: str
    state: Literal["off", "starting", "ok", "unavailable"]
    since: datetime
    error: str | None
    required: bool
    privacy: PrivacyMode
    contract: int | None = Field(description="The version of its contract; null when this version has no such slot.")


class SlotRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._services = context.services

    @get("/v1/slots", scope="read")
    async def list_slots(self) -> list[SlotBody]:
        """Every slot with its mode and state."""
        return [self._body(slot) for slot in self._services.slots.list()]

    def _body(self, slot: Slot) -> SlotBody:
        section, status = read_section(self._services.manifest, slot.name), slot.status
        return SlotBody(
            name=slot.name,
            mode=section.mode,
            implementation=slot.implementation,
            state=status.state,
            since=to_moment(status.since),
            error=status.error,
            required=section.required,
            privacy=section.privacy,
            contract=slot.contract.version if slot.contract.calls else None,
        )
