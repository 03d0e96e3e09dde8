"""The timeline."""

import asyncio
from typing import Annotated, Any

from fastapi import Query, Request
from pydantic import BaseModel, Field

from freehold.gateway.context import RouteContext
from freehold.gateway.conversation_words import event_without_words, may_read_words
from freehold.gateway.inputs import DIGITS, UrlNatural, UrlPositive
from freehold.gateway.routing import get


class TimelineEventBody(BaseModel):
    """One timeline event."""

    seq: int
    at: str
    kind: str
    who: str
    data: dict[str, Any]
    hash: str


class TimelineEventsBody(BaseModel):
    """Events in order. `next` is null at the end."""

    events: list[TimelineEventBody]
    next: int | None = Field(
        description="Send it as `after` for the next page, or as `before` when the request had `before`."
    )


class TimelineRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._services = context.services

    @get("/v1/timeline", scope="read")
    async def read_timeline(
        self,
        request: Request,
        after: UrlNatural = 0,
        before: UrlPositive | None = None,
        kind: Annotated[list[Annotated[str, Field(max_length=100)]] | None, Query(max_length=20)] = None,
        limit: Annotated[int, Query(ge=1, le=1000), DIGITS] = 100,
    ) -> TimelineEventsBody:
        """Events after a number, or the last events `before` it, oldest first. `kind` accepts patterns such as `egress.*`.

        Without the scope `prompt`, the words of conversations and commands are left out.
        """
        kinds = tuple(kind or ())
        if before is None:
            found = await asyncio.to_thread(self._services.timeline.read, after, None, kinds, None, limit + 1)
            events, more = found[:limit], len(found) > limit
        else:
            found = await asyncio.to_thread(self._services.timeline.tail, limit + 1, kinds, None, before)
            events, more = found[-limit:], len(found) > limit
        complete = may_read_words(request)
        rows = [
            TimelineEventBody(
                seq=event.seq,
                at=event.at,
                kind=event.kind,
                who=event.who,
                data=dict(event.data) if complete else event_without_words(event.kind, event.data),
                hash=event.hash,
            )
            for event in events
        ]
        next_page = rows[-1 if before is None else 0].seq if more else None
        return TimelineEventsBody(events=rows, next=next_page)
