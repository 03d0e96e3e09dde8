"""What the side door writes down: events for the timeline, and marks that let history take back what was done."""

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from freehold.errors import FreeholdError
from freehold.keeper.client import KeeperClient
from freehold.timeline import Json, Timeline

log = logging.getLogger(__name__)
MAX_WAITING = 4096
MARK_PATIENCE = 5.0


@dataclass(frozen=True)
class Happening:
    kind: str
    data: Mapping[str, Json]
    who: str


class Journal:
    """Events in order, written by one task, several in one transaction when they come fast. Nobody waits for the disk."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._queue: asyncio.Queue[Happening] = asyncio.Queue(MAX_WAITING)

    def note(self, kind: str, data: Mapping[str, Json], who: str) -> None:
        try:
            self._queue.put_nowait(Happening(kind, data, who))
        except asyncio.QueueFull:
            log.warning("too much happens at once: %s was not written to the timeline", kind)

    async def run(self) -> None:
        """Until cancelled; what waits then is still written."""
        try:
            while True:
                batch = [await self._queue.get()]
                batch += self._waiting()
                await asyncio.to_thread(self._write, batch)
        finally:
            self._write(self._waiting())

    def _waiting(self) -> list[Happening]:
        found: list[Happening] = []
        with contextlib.suppress(asyncio.QueueEmpty):
            while True:
                found.append(self._queue.get_nowait())
        return found

    def _write(self, batch: list[Happening]) -> None:
        if not batch:
            return
        try:
            with self._timeline.transaction() as tx:
                for one in batch:
                    tx.append(one.kind, one.data, who=one.who)
        except FreeholdError as error:
            log.warning("the timeline took no events: %s", error)


class Marks:
    """Marks of history around each command. A keeper that is away does not stop work: its own scan finds it later."""

    def __init__(self, keeper: KeeperClient) -> None:
        self._keeper = keeper

    async def mark(self, phase: Literal["before", "after"], visit: str, why: str) -> None:
        with contextlib.suppress(FreeholdError):
            await self._keeper.call(
                "history.mark",
                {"phase": phase, "kind": "command", "who": {"by": "ssh", "session": visit}, "why": why},
                timeout=MARK_PATIENCE,
            )
