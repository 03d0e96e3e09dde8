"""What `freehold slots try events` does to a sink. The log of this home is not touched."""

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime

from freehold.slots.contract import Reply, SlotCall, SlotCaller, SlotImplementation, SlotName
from freehold.slots.errors import SlotError, slot_unavailable
from freehold.slots.events.cloud_event import OWN_TYPES, CloudEvent
from freehold.slots.events.external import make_sink
from freehold.slots.events.sink import SinkAway, SinkRefused
from freehold.slots.host import SlotPlace
from freehold.slots.settings import ExternalSettings
from freehold.slots.trial import TrialPart


class SinkTrial:
    """A sink alone, without a log in front of it."""

    records_events = False

    def __init__(self, settings: ExternalSettings) -> None:
        self.sink = make_sink(settings)
        self.kind = self.sink.kind
        self.source = f"urn:uuid:{uuid.uuid4()}"

    async def connect(self) -> None:
        try:
            await self.sink.connect()
        except SinkAway as error:
            raise slot_unavailable("events", str(error)) from error

    async def health(self) -> None:
        try:
            await self.sink.check()
        except SinkAway as error:
            raise slot_unavailable("events", str(error)) from error

    async def close(self) -> None:
        await self.sink.close()

    async def call(self, request: SlotCall[Reply], caller: SlotCaller) -> Reply:
        raise SlotError("events", "invalid", "A trial sends events only")

    async def send(self, number: int) -> None:
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        data = {"words": "Freehold checks whether this sink takes events"}
        event = CloudEvent(number, str(number), self.source, f"{OWN_TYPES}events.tried", now, "freehold", data)
        try:
            await self.sink.send(event)
        except (SinkAway, SinkRefused) as error:
            raise slot_unavailable("events", str(error)) from error


def make_trial(name: SlotName, place: SlotPlace, settings: Mapping[str, str], unique: str) -> SinkTrial:
    own = dict(settings)
    if not own.get("url", "").startswith("http"):
        own |= {"stream": unique, "prefix": unique}
    return SinkTrial(ExternalSettings(name, own, place.environ, place.find_secret))


async def remove_trial(store: SlotImplementation) -> None:
    """A webhook keeps what it got: nothing there can be removed."""
    remove = getattr(store.sink, "remove_stream", None) if isinstance(store, SinkTrial) else None
    if remove is not None:
        try:
            await remove()
        except SinkAway as error:
            raise slot_unavailable("events", str(error)) from error


async def _send(store: SlotImplementation) -> None:
    assert isinstance(store, SinkTrial)
    await store.send(1)


async def _send_again(store: SlotImplementation) -> None:
    assert isinstance(store, SinkTrial)
    await store.send(1)
    await store.send(2)


PARTS: tuple[TrialPart, ...] = (
    ("Send an event", _send),
    ("Send the same event again, and another one", _send_again),
)
