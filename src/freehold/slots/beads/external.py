"""The beads slot, kept in a PostgreSQL database or by another Freehold: the address says which."""

from freehold.slots.contract import SlotImplementation
from freehold.slots.host import SlotPlace
from freehold.slots.paired import PAIRED
from freehold.slots.settings import ExternalSettings


def make_external(_place: SlotPlace, settings: ExternalSettings) -> SlotImplementation:
    if is_neighbour(settings.require("url")):
        from freehold.slots.beads.neighbour import NeighbourBeads

        return NeighbourBeads(settings)
    from freehold.slots.beads.calls import STEPS_OF_CALL
    from freehold.slots.beads.contract import CONTRACT
    from freehold.slots.beads.schema import STEPS
    from freehold.slots.postgres import PostgresTables

    return PostgresTables(CONTRACT, settings, STEPS, STEPS_OF_CALL)


def is_neighbour(url: str) -> bool:
    return url.lower().startswith(("http://", "https://", PAIRED))
