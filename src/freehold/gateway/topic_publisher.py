"""Publishes the timeline, file changes, health and egress on the topics of the socket."""

import asyncio
import logging
from contextlib import aclosing
from typing import Any

from freehold.errors import FreeholdError
from freehold.gateway.conversation_words import event_without_words
from freehold.gateway.health import make_health_monitor
from freehold.gateway.services import Services
from freehold.gateway.topics import EncodedMessage, Topic, Topics, encode_message
from freehold.history.calls import FollowFiles
from freehold.observe.probes import ComponentState
from freehold.strict_json import encode
from freehold.timeline import TimelineEvent

# A reader that has missed more events than this must list them again over HTTP.
MAX_MISSED = 500
MIN_RETRY_DELAY = 0.2
MAX_RETRY_DELAY = 5.0

log = logging.getLogger("freehold.gateway.topic_publisher")


def timeline_event_data(event: TimelineEvent) -> dict[str, Any]:
    return {"seq": event.seq, "at": event.at, "kind": event.kind, "who": event.who, "data": dict(event.data)}


def _leave_out_words(event: dict[str, Any]) -> dict[str, Any]:
    return {**event, "data": event_without_words(event["kind"], event["data"])}


class TopicPublisher:
    """The topics of `/v1/socket` and the tasks that fill them."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self.topics = Topics()
        self.timeline = self.topics.add(
            Topic("timeline", backlog=self._missed_events, leave_out_words=_leave_out_words)
        )
        self.files = self.topics.add(Topic("files"))
        self.health_topic = self.topics.add(Topic("health"))
        self.egress = self.topics.add(Topic("egress"))
        self.health = make_health_monitor(services, self._health_changed)

    async def start(self) -> None:
        last = await asyncio.to_thread(self._services.timeline.last)
        self.timeline.last = 0 if last is None else last.seq

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.health.run())
            group.create_task(self._follow_timeline())
            group.create_task(self._follow_files())
            group.create_task(self._follow_egress())

    async def _missed_events(self, after: int) -> list[EncodedMessage] | None:
        events = await asyncio.to_thread(self._services.timeline.read, after, None, (), None, MAX_MISSED + 1)
        if len(events) > MAX_MISSED:
            return None
        return [(event.seq, encode_message("timeline", event.seq, timeline_event_data(event))) for event in events]

    async def _follow_timeline(self) -> None:
        async with aclosing(self._services.timeline.follow(self.timeline.last)) as events:
            async for event in events:
                self.timeline.publish(timeline_event_data(event), event.seq)

    async def _follow_files(self) -> None:
        """Follow the keeper's stream of changes. When it ends, connect again; changes in between are not published."""
        wait = MIN_RETRY_DELAY
        while True:
            try:
                async with aclosing(self._services.keeper.stream(FollowFiles())) as batches:
                    async for batch in batches:
                        wait = MIN_RETRY_DELAY
                        self.files.publish(encode(batch))
            except FreeholdError as error:
                log.debug("the keeper's file changes ended", extra={"error": error})
            await asyncio.sleep(wait)
            wait = min(MAX_RETRY_DELAY, wait * 2)

    async def _follow_egress(self) -> None:
        async with aclosing(self._services.computer_access.egress_changes()) as changes:
            async for state in changes:
                self.egress.publish(state.as_json())

    async def _health_changed(self, _before: ComponentState, after: ComponentState) -> None:
        self.health_topic.publish(after.as_json())
