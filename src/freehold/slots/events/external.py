"""Events that are sent to a webhook, to NATS or to a paired Freehold. The log of this home is the outbox."""

from urllib.parse import urlsplit

from freehold.slots.events.local import read_size
from freehold.slots.events.pump import read_kinds
from freehold.slots.events.sink import EventSink
from freehold.slots.events.store import EventStore
from freehold.slots.host import SlotPlace
from freehold.slots.neighbour import is_paired
from freehold.slots.settings import ExternalSettings


def make_external(place: SlotPlace, settings: ExternalSettings) -> EventStore:
    """Only the kinds that the settings name: what leaves this machine is the owner's choice."""
    kinds = read_kinds(settings.find("kinds") or "")
    if not kinds:
        raise settings.wrong(
            "slots.events.settings.kinds is missing: nothing says which events are sent",
            'kinds = "session.*, history.*", or "*" for all of them',
        )
    folder = place.home.root / "events"
    return EventStore(folder, place.timeline, kinds, read_size(settings), make_sink(settings))


def make_sink(settings: ExternalSettings) -> EventSink:
    if is_paired(settings.require("url")):
        from freehold.slots.events.neighbour import NeighbourLog

        return NeighbourLog(settings)
    if urlsplit(settings.require("url")).scheme in ("http", "https"):
        from freehold.slots.events.webhook import Webhook

        return Webhook(settings)
    from freehold.slots.events.jetstream import NatsStream

    return NatsStream(settings)
