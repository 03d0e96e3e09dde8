# made from _async/events.py by python -m tools.generate
"""What others are told: `home.events`."""

import json
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

from freehold.client._sync.connection import SyncConnection
from freehold.client.slot_models import (
    CloudEventInfo,
    DeadLetterCount,
    DeadLetterListPage,
    DeliveryInfo,
    EventImportInfo,
    EventListPage,
    EventRecordPage,
    PublishedEventInfo,
)

EVENTS = "/v1/slots/events"


class SyncEvents:
    """The token needs the scope `events`."""

    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def publish(
        self,
        type: str,
        data: Mapping[str, Any] | None = None,
        *,
        subject: str | None = None,
        key: str | None = None,
    ) -> PublishedEventInfo:
        """Tell something. With a `key` it is told once, however often it is sent."""
        body = {"type": type, "data": dict(data or {}), "subject": subject, "key": key}
        return self._connection.post(EVENTS, PublishedEventInfo, body)

    def read(
        self, after: int = 0, *, types: Sequence[str] = (), limit: int = 100, newest: bool = False
    ) -> EventListPage:
        """Events after a cursor. Pass the page's `cursor` as `after` to read on."""
        query = {"after": after, "type": [*types] or None, "limit": limit, "newest": "true" if newest else None}
        return self._connection.get(EVENTS, EventListPage, query)

    def stream(self, after: int | None = None, *, types: Sequence[str] = ()) -> Generator[CloudEventInfo]:
        """Events as they come; without `after`, from now on. Connects again by itself, and misses nothing by that."""
        query = {"type": [*types] or None}
        with closing(self._connection.follow_events(f"{EVENTS}/stream", after, query)) as texts:
            for text in texts:
                yield CloudEventInfo.model_validate(json.loads(text))

    def delivery(self) -> DeliveryInfo:
        """Where events are sent, and how far that is."""
        return self._connection.get(f"{EVENTS}/delivery", DeliveryInfo)

    def dead_letters(self, after: int = 0, *, limit: int = 100) -> DeadLetterListPage:
        query = {"after": after, "limit": limit}
        return self._connection.get(f"{EVENTS}/dead", DeadLetterListPage, query)

    def resend(self, sequences: Sequence[int] = ()) -> int:
        """Send dead letters again: these, or all of them. Returns how many."""
        body = {"sequences": [*sequences]}
        return (self._connection.post(f"{EVENTS}/dead/resend", DeadLetterCount, body)).count

    def drop(self, sequences: Sequence[int] = ()) -> int:
        """Remove dead letters: these, or all of them. Returns how many."""
        body = {"sequences": [*sequences]}
        return (self._connection.post(f"{EVENTS}/dead/drop", DeadLetterCount, body)).count

    def export(self) -> Iterator[dict[str, Any]]:
        """The whole log, as CloudEvents in JSON."""
        cursor = None
        while True:
            page = self._connection.get(f"{EVENTS}/export", EventRecordPage, {"cursor": cursor})
            yield from page.records
            cursor = page.cursor
            if cursor is None:
                return

    def import_records(self, records: Sequence[Mapping[str, Any]]) -> EventImportInfo:
        """Add events of another log, at most 200 at once."""
        body = {"records": [dict(record) for record in records]}
        return self._connection.post(f"{EVENTS}/import", EventImportInfo, body)
