"""What others are told: `/v1/slots/events`."""

import json
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated, Any

from fastapi import Header, Query, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from freehold.gateway.context import RouteContext
from freehold.gateway.event_stream import EventStream
from freehold.gateway.inputs import DIGITS, MAX_NUMBER, Positive, RecordBody, RequestBody, UrlFlag, UrlNatural
from freehold.gateway.moments import to_moment
from freehold.gateway.principal import principal_of
from freehold.gateway.routing import get, post
from freehold.slots import SlotCaller
from freehold.slots.contract import MAX_KEY
from freehold.slots.errors import SlotError
from freehold.slots.events.cloud_event import CloudEvent
from freehold.slots.events.contract import (
    MAX_CHOSEN,
    MAX_PAGE,
    MAX_RECORDS,
    MAX_SUBJECT,
    MAX_TYPE,
    MAX_TYPES,
    MAX_WAIT,
    AwaitEvents,
    DeadLetter,
    DeliveryState,
    DropDeadLetters,
    ExportEvents,
    GetDelivery,
    ImportEvents,
    ListDeadLetters,
    PublishEvent,
    ReadEvents,
    ResendDeadLetters,
)

MAX_IMPORT = 32 * 1024 * 1024
MAX_STREAMS = 64
STREAM_PAGE = 200
EventKey = Annotated[
    str | None,
    Field(min_length=1, max_length=MAX_KEY, description="The same request with the same key has its effect once."),
]
EventTypes = Annotated[
    list[Annotated[str, Field(min_length=1, max_length=MAX_TYPE)]],
    Query(max_length=MAX_TYPES, description="Types, or their beginning with `.*`, such as `org.freehold.session.*`."),
]
EventLimit = Annotated[int, Query(ge=1, le=MAX_PAGE), DIGITS]


class CloudEventBody(BaseModel):
    """An event as CloudEvents 1.0 writes it in JSON. `sequence` is its place in the log, as 16 digits."""

    sequence: str
    specversion: str
    id: str
    source: str
    type: str
    time: str
    datacontenttype: str
    actor: str
    subject: str | None = None
    timelineseq: int | None = None
    imported: bool = False
    data: dict[str, Any]


class EventPageBody(BaseModel):
    """Send `cursor` as `after` to read on. `missed` events after the cursor you sent are not kept any more."""

    events: list[CloudEventBody]
    cursor: int
    missed: int


class PublishedEventBody(BaseModel):
    id: str
    type: str
    subject: str | None
    at: datetime


class DeliveryBody(BaseModel):
    """Where events are sent, and how far that is. Without a sink they are kept here only."""

    sink: str
    target: str
    state: DeliveryState
    since: datetime
    delivered: int
    waiting: int
    dead: int
    dropped: int
    error: str | None


class DeadLetterBody(BaseModel):
    """An event that the sink did not take."""

    sequence: int
    event: CloudEventBody
    at: datetime
    error: str
    again: bool


class DeadLetterPageBody(BaseModel):
    letters: list[DeadLetterBody]
    cursor: int | None


class DeadLetterChangeBody(BaseModel):
    count: int


class EventRecordsBody(BaseModel):
    records: list[dict[str, Any]]
    cursor: str | None


class EventImportBody(BaseModel):
    created: int
    kept: int


class PublishEventBody(RequestBody):
    type: str = Field(min_length=3, max_length=MAX_TYPE)
    data: RecordBody = Field(default={})
    subject: str | None = Field(default=None, min_length=1, max_length=MAX_SUBJECT)
    key: EventKey = None


class ChosenLettersBody(RequestBody):
    sequences: list[Positive] = Field(default=[], max_length=MAX_CHOSEN, description="None: all of them.")
    key: EventKey = None


class ImportEventsBody(RequestBody):
    records: list[RecordBody] = Field(max_length=MAX_RECORDS)
    key: EventKey = None


class EventRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._slot = context.services.slots.get("events")
        self._streams = 0

    @get("/v1/slots/events", scope="events")
    async def read_events(
        self,
        request: Request,
        after: UrlNatural = 0,
        type: EventTypes = [],  # noqa: B006 - FastAPI copies it
        limit: EventLimit = 100,
        newest: UrlFlag = False,
    ) -> EventPageBody:
        """Events after a cursor; 0 is the beginning of the log. With `newest`, the last ones."""
        page = await self._slot.call(ReadEvents(after, tuple(type), limit, newest), _caller(request))
        return EventPageBody(events=[_body(one) for one in page.events], cursor=page.cursor, missed=page.missed)

    @post("/v1/slots/events", status_code=201, scope="events")
    async def publish_event(self, body: PublishEventBody, request: Request) -> PublishedEventBody:
        """Tell something. Its type must not begin with `org.freehold.`."""
        made = await self._slot.call(PublishEvent(body.type, body.data, body.subject, body.key), _caller(request))
        return PublishedEventBody(id=made.id, type=made.type, subject=made.subject, at=to_moment(made.at))

    @get(
        "/v1/slots/events/stream",
        response_class=Response,
        responses={200: {"content": {"text/event-stream": {}}}},
        scope="events",
    )
    async def stream_events(
        self,
        request: Request,
        after: Annotated[int | None, Query(ge=0, le=MAX_NUMBER), DIGITS] = None,
        type: EventTypes = [],  # noqa: B006 - FastAPI copies it
        last_event_id: Annotated[str | None, Header(max_length=20, pattern=r"^[0-9]{1,16}$")] = None,
    ) -> Response:
        """Events as they come, as server-sent events. Without `after` or `Last-Event-ID`: from now on.

        Each message has the CloudEvent as its data and the cursor as its id. A message of the type `missed` says how many
        events after your cursor are not kept any more.
        """
        if self._streams >= MAX_STREAMS:
            raise SlotError(
                "events", "unavailable", f"There are {MAX_STREAMS} streams already", hint="Close one of them"
            )
        caller = _caller(request)
        given = int(last_event_id) if last_event_id is not None else after
        start = (await self._slot.call(AwaitEvents(0, 0.0), caller)).last if given is None else given
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return EventStream(self._stream(start, tuple(type), caller), headers=headers)

    async def _stream(self, after: int, types: tuple[str, ...], caller: SlotCaller) -> AsyncIterator[str]:
        """The reader sets the pace: nothing is kept for one that is slow. It ends when the slot cannot be reached."""
        self._streams += 1
        try:
            yield f"event: position\nid: {after}\ndata: {{}}\n\n"
            while True:
                page = await self._slot.call(ReadEvents(after, types, STREAM_PAGE), caller)
                if page.missed:
                    yield f"event: missed\nid: {page.cursor}\ndata: {json.dumps({'missed': page.missed})}\n\n"
                for event in page.events:
                    yield f"id: {event.sequence}\ndata: {json.dumps(event.as_json(), separators=(',', ':'))}\n\n"
                if page.cursor == after:
                    mark = await self._slot.call(AwaitEvents(after, MAX_WAIT), caller)
                    if mark.last <= after:
                        yield ": still here\n\n"
                after = page.cursor
        except SlotError:
            return
        finally:
            self._streams -= 1

    @get("/v1/slots/events/delivery", scope="events")
    async def get_delivery(self, request: Request) -> DeliveryBody:
        found = await self._slot.call(GetDelivery(), _caller(request))
        return DeliveryBody.model_validate({**vars(found), "since": to_moment(found.since)})

    @get("/v1/slots/events/dead", scope="events")
    async def list_dead_letters(
        self, request: Request, after: UrlNatural = 0, limit: EventLimit = 100
    ) -> DeadLetterPageBody:
        """Events that the sink did not take, in order."""
        page = await self._slot.call(ListDeadLetters(after, limit), _owner(request))
        return DeadLetterPageBody(letters=[_letter(one) for one in page.letters], cursor=page.cursor)

    @post("/v1/slots/events/dead/resend", scope="events")
    async def resend_dead_letters(self, body: ChosenLettersBody, request: Request) -> DeadLetterChangeBody:
        wanted = ResendDeadLetters(tuple(body.sequences), body.key)
        return DeadLetterChangeBody(count=(await self._slot.call(wanted, _owner(request))).count)

    @post("/v1/slots/events/dead/drop", scope="events")
    async def drop_dead_letters(self, body: ChosenLettersBody, request: Request) -> DeadLetterChangeBody:
        wanted = DropDeadLetters(tuple(body.sequences), body.key)
        return DeadLetterChangeBody(count=(await self._slot.call(wanted, _owner(request))).count)

    @get("/v1/slots/events/export", scope="events")
    async def export_events(
        self,
        request: Request,
        limit: Annotated[int, Query(ge=1, le=MAX_RECORDS), DIGITS] = MAX_RECORDS,
        cursor: Annotated[str | None, Query(max_length=16)] = None,
    ) -> EventRecordsBody:
        """The whole log, as CloudEvents in JSON."""
        found = await self._slot.call(ExportEvents(limit, cursor), _owner(request))
        return EventRecordsBody(records=[dict(one) for one in found.records], cursor=found.cursor)

    @post("/v1/slots/events/import", scope="events", max_body=MAX_IMPORT)
    async def import_events(self, body: ImportEventsBody, request: Request) -> EventImportBody:
        """Add events of another log. They are not sent to the sink."""
        done = await self._slot.call(ImportEvents(tuple(body.records), body.key), _owner(request))
        return EventImportBody(created=done.created, kept=done.kept)


def _body(event: CloudEvent) -> CloudEventBody:
    return CloudEventBody.model_validate(event.as_json())


def _letter(letter: DeadLetter) -> DeadLetterBody:
    return DeadLetterBody(
        sequence=letter.sequence,
        event=_body(letter.event),
        at=to_moment(letter.at),
        error=letter.error,
        again=letter.again,
    )


def _caller(request: Request) -> SlotCaller:
    return SlotCaller(principal_of(request.scope).who)


def _owner(request: Request) -> SlotCaller:
    """As `_caller`, for what looks after the log: the owner and programs of the owner. Raises `events.denied`."""
    if principal_of(request.scope).signature is not None:
        raise SlotError(
            "events",
            "denied",
            "A neighbour may read and publish events, and nothing else",
            hint="Ask the owner of this Freehold for a token with the scope events",
        )
    return _caller(request)
