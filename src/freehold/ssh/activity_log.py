"""What the SSH server records: timeline events, and history marks around each command, so that it can be undone."""

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from freehold.errors import FreeholdError
from freehold.history.calls import MarkFiles, RequestAuthor
from freehold.keeper.client import KeeperClient
from freehold.timeline import Json, Timeline

log = logging.getLogger(__name__)
MAX_QUEUED_EVENTS = 4096
MARK_TIMEOUT = 5.0
GATHER_INTERVAL = 0.02
"""Seconds until events are written. The start and the end of a short command are one write, after it has ended."""


@dataclass(frozen=True)
class QueuedEvent:
    kind: str
    data: Mapping[str, Json]
    who: str


class EventWriter:
    """Writes timeline events in order, in batches. `record` never waits for the disk."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._queue: asyncio.Queue[QueuedEvent] = asyncio.Queue(MAX_QUEUED_EVENTS)
        self._batch: list[QueuedEvent] = []

    def record(self, kind: str, data: Mapping[str, Json], who: str) -> None:
        try:
            self._queue.put_nowait(QueuedEvent(kind, data, who))
        except asyncio.QueueFull:
            log.warning("the event queue is full: %s was not written to the timeline", kind)

    async def run(self) -> None:
        """Write events until cancelled, then write what is still queued."""
        try:
            while True:
                self._batch.append(await self._queue.get())
                await asyncio.sleep(GATHER_INTERVAL)
                batch, self._batch = self._batch + self._drain(), []
                await asyncio.to_thread(self._write, batch)
        finally:
            self._write(self._batch + self._drain())

    def _drain(self) -> list[QueuedEvent]:
        found: list[QueuedEvent] = []
        with contextlib.suppress(asyncio.QueueEmpty):
            while True:
                found.append(self._queue.get_nowait())
        return found

    def _write(self, batch: list[QueuedEvent]) -> None:
        if not batch:
            return
        try:
            with self._timeline.transaction() as tx:
                for one in batch:
                    tx.append(one.kind, one.data, who=one.who)
        except FreeholdError as error:
            log.warning("events could not be written to the timeline: %s", error)


class HistoryMarks:
    """Marks each command in history. Without a keeper, commands still run, and its next scan finds their changes."""

    def __init__(self, keeper: KeeperClient) -> None:
        self._keeper = keeper

    async def mark(self, phase: Literal["before", "after"], connection: str, why: str) -> None:
        with contextlib.suppress(FreeholdError):
            await self._keeper.call(
                MarkFiles(phase, "command", RequestAuthor(by="ssh", connection=connection), why), timeout=MARK_TIMEOUT
            )
