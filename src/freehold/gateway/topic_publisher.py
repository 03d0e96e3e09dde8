"""What happens in the house, brought to the sockets: the timeline, file changes and the state of every component."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, cast

from freehold.errors import FreeholdError
from freehold.gateway.health import watch_health
from freehold.gateway.house import House
from freehold.gateway.topics import Encoded, Topic, Topics, encode_message
from freehold.observe.probes import ComponentState
from freehold.timeline import Event

# A reader that has missed more than this lists anew over HTTP.
MAX_MISSED = 500
FIRST_RETRY = 0.2
LONGEST_RETRY = 5.0

log = logging.getLogger("freehold.gateway.feeds")


def event_data(event: Event) -> dict[str, Any]:
    return {"seq": event.seq, "at": event.at, "kind": event.kind, "who": event.who, "data": dict(event.data)}


class Feeds:
    """The topics of `/v1/socket` and the tasks that fill them."""

    def __init__(self, house: House) -> None:
        self._house = house
        self.topics = Topics()
        self.timeline = self.topics.add(Topic("timeline", backlog=self._missed_events))
        self.files = self.topics.add(Topic("files"))
        self.health_topic = self.topics.add(Topic("health"))
        self.egress = self.topics.add(Topic("egress"))
        self.health = watch_health(house, self._health_changed)

    async def start(self) -> None:
        last = await asyncio.to_thread(self._house.timeline.last)
        self.timeline.last = 0 if last is None else last.seq

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.health.run())
            group.create_task(self._follow_timeline())
            group.create_task(self._follow_files())
            group.create_task(self._follow_egress())

    async def _missed_events(self, after: int) -> list[Encoded] | None:
        events = await asyncio.to_thread(self._house.timeline.read, after, None, (), None, MAX_MISSED + 1)
        if len(events) > MAX_MISSED:
            return None
        return [(event.seq, encode_message("timeline", event.seq, event_data(event))) for event in events]

    async def _follow_timeline(self) -> None:
        async with aclosing(self._house.timeline.follow(self.timeline.last)) as events:
            async for event in events:
                self.timeline.publish(event_data(event), event.seq)

    async def _follow_files(self) -> None:
        """The keeper's own stream; while the keeper is away there are no changes to tell, and then a fresh start."""
        wait = FIRST_RETRY
        while True:
            try:
                changes = cast("AsyncIterator[dict[str, Any]]", self._house.keeper.stream("files.follow"))
                async for change in changes:
                    wait = FIRST_RETRY
                    self.files.publish(change)
            except FreeholdError as error:
                log.debug("the keeper's file changes ended", extra={"error": error})
            await asyncio.sleep(wait)
            wait = min(LONGEST_RETRY, wait * 2)

    async def _follow_egress(self) -> None:
        async with aclosing(self._house.sealed.egress_changes()) as changes:
            async for snapshot in changes:
                self.egress.publish(snapshot.as_json())

    async def _health_changed(self, _before: ComponentState, after: ComponentState) -> None:
        self.health_topic.publish(after.as_json())
