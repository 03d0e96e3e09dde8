"""The orchestrator of another Freehold: runs there, on its machine, with its agents and its folders."""

from freehold.slots.host import SlotPlace
from freehold.slots.orchestrator.neighbour import NeighbourRuns
from freehold.slots.settings import ExternalSettings


def make_external(place: SlotPlace, settings: ExternalSettings) -> NeighbourRuns:
    return NeighbourRuns(settings, place.timeline)
