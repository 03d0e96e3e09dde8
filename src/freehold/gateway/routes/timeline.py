"""The record of everything, for those who may read it."""

import asyncio
from typing import Annotated, Any

from fastapi import FastAPI, Query
from pydantic import BaseModel, Field

from freehold.gateway.house import House
from freehold.gateway.needs import needs

# The largest whole number that every client can write.
MAX_NUMBER = 2**53


class EventRow(BaseModel):
    """One entry of the timeline."""

    seq: int
    at: str
    kind: str
    who: str
    data: dict[str, Any]
    hash: str


class EventPage(BaseModel):
    """Entries in order; `next` is the `after` (or, going backwards, the `before`) of the next page, null at the end."""

    events: list[EventRow]
    next: int | None = Field(description="Give this as `after`, or as `before` when that was given, for the next page.")


def add_timeline(app: FastAPI, house: House) -> None:
    @app.get("/v1/timeline")
    @needs("read")
    async def read_timeline(
        after: Annotated[int, Query(ge=0, le=MAX_NUMBER)] = 0,
        before: Annotated[int | None, Query(ge=1, le=MAX_NUMBER)] = None,
        kind: Annotated[list[str] | None, Query(max_length=20)] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> EventPage:
        """Entries after a sequence number, or the last ones `before` it, oldest first; `kind` takes patterns such as `egress.*`."""
        kinds = tuple(kind or ())
        if before is None:
            found = await asyncio.to_thread(house.timeline.read, after, None, kinds, None, limit + 1)
            events, more = found[:limit], len(found) > limit
        else:
            found = await asyncio.to_thread(house.timeline.tail, limit + 1, kinds, None, before)
            events, more = found[-limit:], len(found) > limit
        rows = [
            EventRow(seq=event.seq, at=event.at, kind=event.kind, who=event.who, data=dict(event.data), hash=event.hash)
            for event in events
        ]
        edge = rows[-1 if before is None else 0].seq if more else None
        return EventPage(events=rows, next=edge)
