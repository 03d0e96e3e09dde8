"""The events slot: what is told, where it is sent, and what could not be sent."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from freehold.slots.contract import Record, SlotCall, SlotContract, SlotTransfer, SlotWrite
from freehold.slots.events.cloud_event import CloudEvent
from freehold.strict_json import EpochSeconds
from freehold.timeline.event import Json

MAX_TYPE = 200
MAX_SUBJECT = 500
MAX_DATA = 64 * 1024
MAX_PAGE = 500
MAX_TYPES = 20
MAX_WAIT = 5.0
MAX_RECORDS = 200
MAX_CHOSEN = 1000
"""How many dead letters one call names."""

DeliveryState = Literal["none", "ok", "away"]


@dataclass(frozen=True)
class PublishedEvent:
    """An event that a caller has published. It gets its place in the log when it is written there."""

    id: str
    type: str
    subject: str | None
    at: EpochSeconds


@dataclass(frozen=True)
class LogPage:
    """Events in their order. `cursor` reads on from here, also when there is nothing more yet.

    `missed`: how many events before these were removed from the log, because it is full, after the cursor that was given.
    """

    events: tuple[CloudEvent, ...]
    cursor: int
    missed: int


@dataclass(frozen=True)
class EventMark:
    """The last event of the log; 0 when it has none."""

    last: int


@dataclass(frozen=True)
class DeliveryStatus:
    """Where events are sent, and how far that is. `target` is without a password; empty when events are only kept here.

    `waiting` events are not delivered yet. `dropped` were removed before the sink could be reached, because the log was
    full. `since` is when the state began, in seconds since 1970.
    """

    sink: str
    target: str
    state: DeliveryState
    since: EpochSeconds
    delivered: int
    waiting: int
    dead: int
    dropped: int
    error: str | None


@dataclass(frozen=True)
class DeadLetter:
    """An event that the sink did not take. `again`: it is being sent again."""

    sequence: int
    event: CloudEvent
    at: EpochSeconds
    error: str
    again: bool


@dataclass(frozen=True)
class DeadLetterPage:
    letters: tuple[DeadLetter, ...]
    cursor: int | None


@dataclass(frozen=True)
class DeadLetterChange:
    count: int


@dataclass(frozen=True)
class EventRecords:
    """Events as CloudEvents in JSON."""

    records: tuple[Record, ...]
    cursor: str | None


@dataclass(frozen=True)
class EventImport:
    """`kept`: events that the log has already."""

    created: int
    kept: int


@dataclass(frozen=True)
class PublishEvent(SlotWrite[PublishedEvent]):
    """Tell something. Types that begin with `org.freehold.` are Freehold's own."""

    method: ClassVar[str] = "publish"
    event: ClassVar[str] = "events.published"
    identifiers: ClassVar[frozenset[str]] = frozenset({"type", "key"})
    type: str
    data: Mapping[str, object]
    subject: str | None = None
    key: str | None = None

    def describe(self, reply: Any) -> Mapping[str, Json]:
        assert isinstance(reply, PublishedEvent)
        return {"id": reply.id, "type": reply.type}


@dataclass(frozen=True)
class ReadEvents(SlotCall[LogPage]):
    """Events after a cursor; 0 is the beginning. With `newest`, the last ones instead."""

    method: ClassVar[str] = "read"
    after: int = 0
    types: tuple[str, ...] = ()
    limit: int = 100
    newest: bool = False


@dataclass(frozen=True)
class AwaitEvents(SlotCall[EventMark]):
    """Answers when the log has an event after the cursor, or after so many seconds."""

    method: ClassVar[str] = "await"
    after: int
    seconds: float = 1.0


@dataclass(frozen=True)
class GetDelivery(SlotCall[DeliveryStatus]):
    method: ClassVar[str] = "delivery"


@dataclass(frozen=True)
class ListDeadLetters(SlotCall[DeadLetterPage]):
    method: ClassVar[str] = "list_dead"
    after: int = 0
    limit: int = 100


class DeadLetterWrite(SlotWrite[DeadLetterChange]):
    """Concerns the letters with these numbers, or all of them when none is given."""

    sequences: tuple[int, ...]

    def describe(self, reply: Any) -> Mapping[str, Json]:
        assert isinstance(reply, DeadLetterChange)
        return {"count": reply.count}


@dataclass(frozen=True)
class ResendDeadLetters(DeadLetterWrite):
    method: ClassVar[str] = "resend_dead"
    event: ClassVar[str] = "events.dead_letters_resent"
    sequences: tuple[int, ...] = ()
    key: str | None = None


@dataclass(frozen=True)
class DropDeadLetters(DeadLetterWrite):
    method: ClassVar[str] = "drop_dead"
    event: ClassVar[str] = "events.dead_letters_dropped"
    sequences: tuple[int, ...] = ()
    key: str | None = None


@dataclass(frozen=True)
class ExportEvents(SlotCall[EventRecords]):
    method: ClassVar[str] = "export"
    limit: int = MAX_RECORDS
    cursor: str | None = None


@dataclass(frozen=True)
class ImportEvents(SlotWrite[EventImport]):
    """Adds events of another log. They are not sent to the sink. Idempotent by source and id."""

    method: ClassVar[str] = "import"
    event: ClassVar[str] = "events.imported"
    records: tuple[Record, ...]
    key: str | None = None

    def describe(self, reply: Any) -> Mapping[str, Json]:
        assert isinstance(reply, EventImport)
        return {"created": reply.created, "kept": reply.kept}


CONTRACT = SlotContract(
    "events",
    1,
    (
        PublishEvent,
        ReadEvents,
        AwaitEvents,
        GetDelivery,
        ListDeadLetters,
        ResendDeadLetters,
        DropDeadLetters,
        ExportEvents,
        ImportEvents,
    ),
    SlotTransfer(MAX_RECORDS, lambda cursor: ExportEvents(cursor=cursor), lambda records: ImportEvents(records)),
)
