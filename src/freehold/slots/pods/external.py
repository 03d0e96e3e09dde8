"""The pods slot, kept on a Solid server or by a paired Freehold: the address says which."""

from freehold.slots.host import SlotPlace
from freehold.slots.neighbour import is_paired
from freehold.slots.pods.solid import SolidServer
from freehold.slots.pods.store import PodStore
from freehold.slots.settings import ExternalSettings


def make_external(place: SlotPlace, settings: ExternalSettings) -> PodStore:
    if is_paired(settings.require("url")):
        from freehold.slots.pods.neighbour import NeighbourPods

        return PodStore(NeighbourPods(settings), place.timeline)
    return PodStore(SolidServer(settings), place.timeline)
