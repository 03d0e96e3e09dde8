"""The pods slot, kept on a Solid server."""

from freehold.slots.host import SlotPlace
from freehold.slots.pods.solid import SolidServer
from freehold.slots.pods.store import PodStore
from freehold.slots.settings import ExternalSettings


def make_external(place: SlotPlace, settings: ExternalSettings) -> PodStore:
    return PodStore(SolidServer(settings), place.timeline)
