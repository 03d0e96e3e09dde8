"""Messages for the owner. Each is passed on at once and stored until its cause is gone."""

import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from freehold.history.database import transaction
from freehold.history.entries import EntryWriter
from freehold.history.model import HistoryNotice


class Notices:
    """Thread-safe. A notice that cannot be stored, because the disk is full, is still passed to `on_notice`."""

    def __init__(
        self, db: sqlite3.Connection, lock: threading.RLock, on_notice: Callable[[HistoryNotice], None]
    ) -> None:
        self._db = db
        self._lock = lock
        self._entries = EntryWriter(db)
        self.on_notice = on_notice

    def add(self, code: str, message: str, hint: str = "") -> None:
        notice = HistoryNotice(code, message, hint, time.time())
        with self._lock, suppress(sqlite3.OperationalError), transaction(self._db):
            self._entries.add_notice(notice)
        self.on_notice(notice)

    def add_once(self, code: str, message: str, hint: str = "") -> None:
        """Unless it was given already and its cause is still there."""
        if code not in self.read_times():
            self.add(code, message, hint)

    def remove(self, code: str) -> None:
        """Idempotent."""
        with self._lock, suppress(sqlite3.OperationalError), transaction(self._db):
            self._entries.remove_notice(code)

    def read_times(self) -> dict[str, float]:
        """When each stored notice was given, by code."""
        with self._lock:
            return {notice.code: notice.at for notice in self._entries.notices()}
