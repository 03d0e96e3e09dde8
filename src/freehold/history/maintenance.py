"""What history does unasked: a snapshot when the writing has stopped, a scan now and then, collection once an hour."""

import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Protocol

from freehold.errors import FreeholdError
from freehold.history.model import Notice
from freehold.history.settings import Settings
from freehold.history.snapshots import explained
from freehold.history.watching import Watcher

COLLECT_EVERY = 3600.0
_LOOK_EVERY = 1.0
_RETRY_AFTER = 30.0


class Chores(Protocol):
    def quiet_snapshot(self, why: str) -> None: ...
    def collect_unasked(self) -> None: ...
    def count_lines(self) -> None: ...
    def empty_staging(self) -> None: ...


class Housekeeping:
    """One thread. A chore that fails is told to the owner and tried again later; the thread goes on."""

    def __init__(self, chores: Chores, watcher: Watcher, settings: Settings, tell: Callable[[Notice], None]) -> None:
        self._chores = chores
        self._watcher = watcher
        self._settings = settings
        self._tell = tell
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="history-housekeeping", daemon=True)
        self._scanned = self._collected = time.monotonic()

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        quiet = self._settings.quiet
        pause = min(_LOOK_EVERY, quiet / 4) if quiet else _LOOK_EVERY
        while not self._ending.wait(pause):
            try:
                self._look(time.monotonic())
            except (FreeholdError, sqlite3.OperationalError, OSError) as error:
                told = error if isinstance(error, FreeholdError) else explained(error)
                self._tell(Notice(told.code, told.message, told.hint, time.time()))
                self._ending.wait(_RETRY_AFTER)

    def _look(self, now: float) -> None:
        every = self._settings.scan_every if self._watcher.degraded is None else self._settings.scan_without_watch
        if now - self._scanned >= every:
            self._scanned = now
            self._watcher.doubt("a scan was due")
            self._chores.quiet_snapshot("found by the regular scan")
        elif (
            self._settings.quiet
            and self._watcher.is_dirty
            and now - self._watcher.last_activity >= self._settings.quiet
        ):
            self._chores.quiet_snapshot("")
        if now - self._collected >= COLLECT_EVERY:
            self._collected = now
            self._chores.collect_unasked()
        self._chores.empty_staging()
        self._chores.count_lines()
