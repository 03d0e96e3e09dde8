"""The beads slot, kept in the home."""

from freehold.slots.beads.calls import STEPS_OF_CALL
from freehold.slots.beads.contract import BEADS
from freehold.slots.beads.schema import STEPS
from freehold.slots.timeline_tables import TimelineTables
from freehold.timeline import Timeline


def make_local(timeline: Timeline) -> TimelineTables:
    return TimelineTables(BEADS, timeline, STEPS, STEPS_OF_CALL)
