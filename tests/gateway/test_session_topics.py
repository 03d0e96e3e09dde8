"""Who waits for an event of a session is woken by it."""

import asyncio
from types import SimpleNamespace
from typing import Any

from freehold.agents.sessions.rows import SessionEventRow
from freehold.gateway.session_topics import SessionTopics
from freehold.gateway.topics import Topics


def event(seq: int) -> SessionEventRow:
    return SessionEventRow(seq, "2026-01-01T00:00:00Z", 1, "message", {"text": "words"})


async def test_all_who_wait_for_a_session_are_woken_by_its_next_event_and_by_no_other() -> None:
    publisher: Any = SimpleNamespace(topics=Topics())
    store: Any = None  # nothing is read
    topics = SessionTopics(publisher, store)
    waiting = [asyncio.ensure_future(topics.wait_event("s1", after)) for after in (0, 0, 1)]
    await asyncio.sleep(0)
    topics.publish_events("s2", [event(9)])
    topics.publish_events("s1", [])
    await asyncio.sleep(0)
    assert not any(one.done() for one in waiting)
    topics.publish_events("s1", [event(1)])
    await asyncio.gather(*waiting[:2])
    assert not waiting[2].done()
    await topics.wait_event("s1", 0)  # it was published already
    topics.publish_events("s1", [event(2)])
    await waiting[2]
