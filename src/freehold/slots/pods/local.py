"""The pods slot, kept as files of the home. History records them."""

from freehold.slots.host import SlotPlace
from freehold.slots.pods.files import PodFiles
from freehold.slots.pods.store import PodStore
from freehold.slots.settings import ExternalSettings


def make_local(place: SlotPlace, _settings: ExternalSettings) -> PodStore:
    return PodStore(PodFiles(place.home.pods, place.home.root / "pods.lock"), place.timeline)
