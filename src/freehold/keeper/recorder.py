"""Writes the keeper's events to the timeline, in order and in a thread, so that the keeper never waits for the disk.

While the disk cannot be written (full, read-only), a limited number of events waits in memory.
"""

import asyncio
import collections
import logging
import threading
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from freehold.errors import FreeholdError
from freehold.timeline import Json, Timeline, TimelineEvent

log = logging.getLogger(__name__)

MAX_WAITING_EVENTS = 2000
RETRY_FIRST = 0.1
UNWRITABLE_CODES = frozenset({"timeline.not-json", "timeline.too-big", "timeline.bad-kind", "timeline.bad-who"})
RETRY_LIMIT = 5.0


class RecordEvent(Protocol):
    def __call__(self, kind: str, data: Mapping[str, Json], *, who: str = ...) -> None: ...


class EventRecorder:
    def __init__(self, path: Path, now: Callable[[], float]) -> None:
        self._path = path
        self._now = now
        self._waiting: collections.deque[tuple[str, Mapping[str, Json], str]] = collections.deque()
        self._lost = 0
        self._more = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._timeline: Timeline | None = None
        self._write_lock = threading.Lock()
        self._writing = False
        self.trouble: str | None = None

    def __call__(self, kind: str, data: Mapping[str, Json], *, who: str = "keeper") -> None:
        """Record an event, in the timeline and in the keeper's log. Never blocks and never fails."""
        log.info("%s %s", kind, " ".join(f"{name}={value}" for name, value in data.items()))
        if len(self._waiting) >= MAX_WAITING_EVENTS:
            self._waiting.popleft()
            self._lost += 1
        self._waiting.append((kind, data, who))
        self._idle.clear()
        self._more.set()

    async def write_until_cancelled(self) -> None:
        """Write events until cancelled."""
        self._writing = True
        wait = RETRY_FIRST
        while True:
            if not self._waiting:
                self._idle.set()
                self._more.clear()
                await self._more.wait()
            if await asyncio.to_thread(self.write_now):
                wait = RETRY_FIRST
            else:
                await asyncio.sleep(wait)
                wait = min(wait * 2, RETRY_LIMIT)

    async def wait_flushed(self) -> None:
        """Returns when every event so far is on disk; at once when `write_until_cancelled` does not run."""
        if self._writing:
            await self._idle.wait()

    def write_now(self) -> bool:
        """Write the waiting events in this thread; False when the disk cannot be written."""
        with self._write_lock:
            return self._write_waiting()

    def _write_waiting(self) -> bool:
        try:
            if self._timeline is None:
                self._timeline = Timeline(self._path, clock=lambda: datetime.fromtimestamp(self._now(), UTC))
            while self._waiting:
                kind, data, who = self._waiting[0]
                if self._lost:
                    self._timeline.append("timeline.events_lost", {"count": self._lost}, who="keeper")
                    self._lost = 0
                try:
                    self._timeline.append(kind, data, who=who)
                except FreeholdError as error:
                    if error.code not in UNWRITABLE_CODES:
                        raise
                    # An event that can never be written must not block those after it.
                    log.error("%s cannot be written: %s", kind, error.message)  # noqa: TRY400 - its cause is its data
                    self._lost += 1
                self._waiting.popleft()
        except (FreeholdError, OSError) as error:
            if self.trouble is None:
                log.warning("events cannot be written to the timeline now: %s", error)
            self.trouble = str(error)
            return False
        self.trouble = None
        return True

    def tail(self, count: int) -> list[TimelineEvent]:
        """The last events; empty while the timeline cannot be read. For any thread."""
        try:
            return self._timeline.tail(count) if self._timeline is not None else []
        except FreeholdError:
            return []

    def close(self) -> None:
        if self._timeline is not None:
            self._timeline.close()
