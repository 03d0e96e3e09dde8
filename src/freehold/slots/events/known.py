"""Which events the log has, by source and id, so that an import adds none twice."""

import hashlib
import threading
import time

from freehold.slots.events.cloud_event import CloudEvent
from freehold.slots.events.log import MAX_LOOKED_AT, EventLog

KEPT_SECONDS = 60.0
"""How long it is remembered after an import. An import has many pages, and each reads only what is new."""


class KnownEvents:
    """Blocking. Safe in several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._places: dict[bytes, int] = {}
        self._first = self._reached = 0
        self._used = 0.0

    def follow(self, log: EventLog) -> None:
        """Reads what the log has got since the last time."""
        with self._lock:
            ends = log.ends()
            if ends.last < self._reached:
                self._clear()  # somebody has removed the log
            self._first = ends.first
            while self._reached < ends.last:
                part = log.read(self._reached, MAX_LOOKED_AT)
                self._places.update((_name(event), event.sequence) for event in part.events)
                self._reached = part.reached
            self._used = time.monotonic()

    def has(self, event: CloudEvent) -> bool:
        """Whether the log has it still."""
        with self._lock:
            return self._places.get(_name(event), 0) >= self._first

    def rest(self) -> None:
        """Forgets everything when no import has asked for a while."""
        with self._lock:
            if time.monotonic() - self._used > KEPT_SECONDS:
                self._clear()

    def _clear(self) -> None:
        self._places = {}
        self._first = self._reached = 0


def _name(event: CloudEvent) -> bytes:
    return hashlib.sha256(f"{event.source}\0{event.id}".encode("utf-8", "surrogatepass")).digest()[:16]
