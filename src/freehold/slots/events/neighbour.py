"""A paired Freehold as a sink: each event is published in its log once, in the name of this Freehold.

Types that begin with `org.freehold.` are only for what happened there itself, so ours get another beginning.
"""

from typing import Any

from freehold.slots.contract import MAX_KEY
from freehold.slots.errors import SlotError
from freehold.slots.events.cloud_event import OWN_TYPES, CloudEvent
from freehold.slots.events.sink import SinkAway, SinkRefused
from freehold.slots.neighbour import NeighbourApi
from freehold.slots.settings import ExternalSettings

TOLD_TYPES = "freehold.neighbour."


class NeighbourLog:
    """A repetition is recognised there by its key, which is the source and the id of the event."""

    kind = "freehold"

    def __init__(self, settings: ExternalSettings) -> None:
        self._api = NeighbourApi(settings, "kinds", "max_mb")
        self.target = self._api.url

    async def connect(self) -> None:
        self._api.open()

    async def check(self) -> None:
        await self.connect()
        try:
            await self._api.send("GET", "/v1/slots/events/delivery")
        except SlotError as error:
            raise SinkAway(error.message) from error

    async def send(self, event: CloudEvent) -> None:
        await self.connect()
        try:
            await self._api.send("POST", "/v1/slots/events", write_event(event))
        except SlotError as error:
            if error.problem == "unavailable":
                raise SinkAway(error.message) from error
            raise SinkRefused(error.message) from error

    async def close(self) -> None:
        await self._api.close()


def write_event(event: CloudEvent) -> dict[str, Any]:
    """What is published there. The event itself, with its own source, id and time, is the data."""
    kind = event.type.removeprefix(OWN_TYPES)
    return {
        "type": event.type if kind == event.type else TOLD_TYPES + kind,
        "data": event.as_json(),
        "subject": event.subject,
        "key": f"{event.source}/{event.id}"[-MAX_KEY:],
    }
