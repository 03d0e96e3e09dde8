"""Publishes what happens in sessions on the gateway's socket: `sessions`, `approvals`, `agents` and `session:ID`."""

import asyncio

from freehold.agents.acp.json_rpc import Json
from freehold.agents.sessions.approval_store import ApprovalRow
from freehold.agents.sessions.rows import SessionEventRow, SessionRow
from freehold.agents.sessions.store import SessionStore
from freehold.agents.threads import run_blocking
from freehold.gateway.topic_publisher import TopicPublisher
from freehold.gateway.topics import EncodedMessage, Topic, encode_message

MAX_BACKLOG = 1_000
"""Events that a client can have missed and still gets. With more it must read the session again."""


class SessionTopics:
    """The watchers of sessions. A topic `session:ID` exists only while a client reads it."""

    def __init__(self, publisher: TopicPublisher, store: SessionStore) -> None:
        self._topics = publisher.topics
        self._store = store
        self._last: dict[str, int] = {}
        self._awaited: dict[str, asyncio.Event] = {}
        """For each session that somebody waits for: set, and removed, by its next event."""
        self._sessions = publisher.topics.add(Topic("sessions", scope="prompt"))
        self._approvals = publisher.topics.add(Topic("approvals", scope="prompt"))
        self._agents = publisher.topics.add(Topic("agents"))
        publisher.topics.add_family("session", self._open_topic)

    async def _open_topic(self, session: str) -> Topic | None:
        """None when there is no such session."""
        seq = await run_blocking(self._store.find_last_seq, session)
        if seq is None:
            return None

        async def read_backlog(after: int) -> list[EncodedMessage] | None:
            return await run_blocking(self._read_backlog, session, after)

        # Events that were published during the query count too, so that a reader misses none.
        first = max(seq, self._last.get(session, 0))
        return Topic(f"session:{session}", scope="prompt", kept=100, first=first, backlog=read_backlog)

    def _read_backlog(self, session: str, after: int) -> list[EncodedMessage] | None:
        """Blocking. None when it is too much: then the client reads the newest page."""
        page = self._store.read_page(session, after=after, limit=MAX_BACKLOG + 1)
        if page.is_cut or len(page.events) > MAX_BACKLOG:
            return None
        topic = f"session:{session}"
        return [(event.seq, encode_message(topic, event.seq, event.as_json())) for event in page.events]

    def publish_events(self, session: str, events: list[SessionEventRow]) -> None:
        if events:
            self._last[session] = max(self._last.get(session, 0), events[-1].seq)
            if (awaited := self._awaited.pop(session, None)) is not None:
                awaited.set()
        topic = self._topics.get(f"session:{session}")
        if topic is None:
            return
        if not topic.readers:
            # The next reader gets the events from the store.
            self._topics.remove(topic.name)
            return
        for event in events:
            if event.seq > topic.last:
                topic.publish(event.as_json(), event.seq)

    async def wait_event(self, session: str, after: int) -> None:
        while self._last.get(session, 0) <= after:
            await self._awaited.setdefault(session, asyncio.Event()).wait()

    def publish_delta(self, session: str, data: Json) -> None:
        topic = self._topics.get(f"session:{session}")
        if topic is not None:
            topic.publish_delta(data)

    def publish_session(self, row: SessionRow) -> None:
        self._sessions.publish(row.as_json())

    def publish_deleted(self, session: str) -> None:
        self._sessions.publish({"id": session, "deleted": True})
        self._last.pop(session, None)
        self._topics.remove(f"session:{session}")

    def publish_approval(self, approval: ApprovalRow) -> None:
        self._approvals.publish(approval.as_json())

    def publish_installation(self, data: Json) -> None:
        self._agents.publish(data)
