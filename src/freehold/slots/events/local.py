"""Events that are kept in this home."""

from freehold.slots.events.log import SEGMENT_BYTES
from freehold.slots.events.pump import read_kinds
from freehold.slots.events.store import EventStore
from freehold.slots.host import SlotPlace
from freehold.slots.settings import ExternalSettings

DEFAULT_MB = 64
MAX_MB = 100_000


def make_local(place: SlotPlace, settings: ExternalSettings) -> EventStore:
    """Everything of the timeline, unless the settings name kinds: it stays here."""
    kinds = read_kinds(settings.find("kinds") or "*")
    return EventStore(place.home.root / "events", place.timeline, kinds, read_size(settings))


def read_size(settings: ExternalSettings) -> int:
    text = settings.find("max_mb") or str(DEFAULT_MB)
    smallest = 2 * SEGMENT_BYTES // 1024 // 1024
    if not text.isascii() or not text.isdigit() or not smallest <= int(text) <= MAX_MB:
        raise settings.wrong(
            f"slots.events.settings.max_mb is {text[:40]!a}", f"A whole number from {smallest} to {MAX_MB}"
        )
    return int(text) * 1024 * 1024
