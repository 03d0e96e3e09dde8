"""The beads slot, kept in a PostgreSQL database."""

from freehold.slots.beads.calls import STEPS_OF_CALL
from freehold.slots.beads.contract import CONTRACT
from freehold.slots.beads.schema import STEPS
from freehold.slots.host import SlotPlace
from freehold.slots.postgres import PostgresTables
from freehold.slots.settings import ExternalSettings


def make_external(_place: SlotPlace, settings: ExternalSettings) -> PostgresTables:
    return PostgresTables(CONTRACT, settings, STEPS, STEPS_OF_CALL)
