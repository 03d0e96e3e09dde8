"""The orchestrator of this Freehold: runs in throw-away computers beside the main one."""

from freehold.slots.host import SlotPlace
from freehold.slots.orchestrator.bounds import read_bounds
from freehold.slots.orchestrator.store import OrchestratorStore
from freehold.slots.settings import ExternalSettings


def make_local(place: SlotPlace, settings: ExternalSettings) -> OrchestratorStore:
    return OrchestratorStore(place.timeline, place.engine, read_bounds(settings))
