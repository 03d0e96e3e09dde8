"""Timeline events: `home.timeline`."""

from collections.abc import AsyncIterator, Sequence
from fnmatch import fnmatchcase

from freehold.client._async.connection import AsyncConnection
from freehold.client.models import EventInfo, EventPage

PAGE = 500


class AsyncTimeline:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def read(
        self, *, after: int = 0, before: int | None = None, kinds: Sequence[str] = (), limit: int = 100
    ) -> EventPage:
        """One page of events after `after`, or the last before `before`, the oldest first. `kinds` are patterns: `egress.*`."""
        query = {"after": after, "before": before, "kind": list(kinds) or None, "limit": limit}
        return await self._connection.get("/v1/timeline", EventPage, query)

    async def follow(self, *, after: int | None = None, kinds: Sequence[str] = ()) -> AsyncIterator[EventInfo]:
        """New events, each once and in order; with `after`, also earlier events after that number.

        Reconnects by itself and loses nothing. Ends only with an error.
        """
        at = after
        async for message in self._connection.follow("timeline", after):
            if message.kind == "event" and (at is None or message.seq > at):
                at = message.seq
                event = EventInfo.model_validate(message.data)
                if not kinds or any(fnmatchcase(event.kind, kind) for kind in kinds):
                    yield event
            elif message.kind == "resync":
                # The socket lost messages: read the missed events page by page.
                more: int | None = message.seq if at is None else at
                while more is not None:
                    page = await self.read(after=more, kinds=kinds, limit=PAGE)
                    for event in page.events:
                        at = event.seq
                        yield event
                    more = page.next
                at = max(message.seq, at or 0)
