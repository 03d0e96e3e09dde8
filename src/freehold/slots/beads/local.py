"""The beads slot, kept in the home."""

from freehold.slots.beads.calls import STEPS_OF_CALL
from freehold.slots.beads.contract import CONTRACT
from freehold.slots.beads.schema import STEPS
from freehold.slots.host import SlotPlace
from freehold.slots.settings import ExternalSettings
from freehold.slots.timeline_tables import TimelineTables


def make_local(place: SlotPlace, _settings: ExternalSettings) -> TimelineTables:
    return TimelineTables(CONTRACT, place.timeline, STEPS, STEPS_OF_CALL)
