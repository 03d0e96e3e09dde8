"""Tells clients the places of the sessions that wait for their agents to start."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

from freehold.agents.sessions.admission import Admission, WaitingPlace
from freehold.agents.sessions.dependencies import SessionDependencies
from freehold.agents.sessions.rows import SessionRow
from freehold.agents.threads import run_blocking
from freehold.errors import FreeholdError

PUBLISH_INTERVAL = 1.0
"""Seconds between two messages about the queue. One who waits for less is not told."""

log = logging.getLogger("freehold.agents")


class QueuePublisher:
    """Set `moved` whenever the queue has changed."""

    def __init__(self, dependencies: SessionDependencies, admission: Admission, moved: asyncio.Event) -> None:
        self._store = dependencies.store
        self._watchers = dependencies.watchers
        self._admission = admission
        self._moved = moved

    async def run(self) -> None:
        """Tells clients each place in the queue when it has changed. Runs until cancelled, whatever one round meets."""
        published: Mapping[str, WaitingPlace] = {}
        while True:
            await self._moved.wait()
            await asyncio.sleep(PUBLISH_INTERVAL)
            self._moved.clear()
            try:
                published = await self._publish_moved(published)
            except Exception:
                log.exception("the places in the queue cannot be told")

    async def _publish_moved(self, published: Mapping[str, WaitingPlace]) -> Mapping[str, WaitingPlace]:
        """Tells the places that were not published yet. Returns all places."""
        waiting = self._admission.describe_waiting()
        moved = [session for session in waiting if waiting[session] != published.get(session)]
        for row in await run_blocking(self._read_existing, moved):
            place = waiting[row.id]
            self._watchers.publish_session(add_place(row, place))
            self._watchers.publish_delta(row.id, {"kind": "waiting", "text": place.message, **place.as_json()})
        return waiting

    def _read_existing(self, sessions: Sequence[str]) -> list[SessionRow]:
        rows = []
        for session in sessions:
            with suppress(FreeholdError):  # it was deleted meanwhile
                rows.append(self._store.get(session))
        return rows


def add_place(row: SessionRow, place: WaitingPlace | None) -> SessionRow:
    """The session with its place in the queue."""
    if place is None:
        return row
    return replace(row, status=row.status if row.status == "needs_you" else "queued", waiting=place.as_json())
