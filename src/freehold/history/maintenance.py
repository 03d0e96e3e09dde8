"""The maintenance thread: a snapshot when writing has stopped, regular scans, garbage collection once an hour."""

import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Protocol

from freehold.errors import FreeholdError
from freehold.history.model import HistoryNotice
from freehold.history.settings import HistorySettings
from freehold.history.snapshot import explain_store_error
from freehold.history.watcher import Watcher

COLLECT_INTERVAL = 3600.0
_CHECK_INTERVAL = 1.0
_RETRY_DELAY = 30.0
_UNSTORED_INTERVAL = 15.0


class MaintenanceTasks(Protocol):
    def take_quiet_snapshot(self, why: str) -> None: ...
    def retry_unstored(self) -> None: ...
    def collect_on_schedule(self) -> None: ...
    def count_lines(self) -> None: ...
    def empty_staging(self) -> None: ...


class MaintenanceThread:
    """One thread. When a task fails, the owner is told and the task is tried again later."""

    def __init__(
        self,
        tasks: MaintenanceTasks,
        watcher: Watcher,
        settings: HistorySettings,
        on_notice: Callable[[HistoryNotice], None],
    ) -> None:
        self._tasks = tasks
        self._watcher = watcher
        self._settings = settings
        self._on_notice = on_notice
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="history-maintenance", daemon=True)
        self._scanned = self._collected = self._retried = time.monotonic()

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        quiet = self._settings.quiet
        pause = min(_CHECK_INTERVAL, quiet / 4) if quiet else _CHECK_INTERVAL
        while not self._ending.wait(pause):
            try:
                self._run_due_tasks(time.monotonic())
            except (FreeholdError, sqlite3.OperationalError, OSError) as error:
                explained = error if isinstance(error, FreeholdError) else explain_store_error(error)
                self._on_notice(HistoryNotice(explained.code, explained.message, explained.hint, time.time()))
                self._ending.wait(_RETRY_DELAY)

    def _run_due_tasks(self, now: float) -> None:
        every = self._settings.scan_every if self._watcher.degraded is None else self._settings.scan_without_watch
        if now - self._scanned >= every:
            self._scanned = now
            self._watcher.require_full_scan("a scan was due")
            self._tasks.take_quiet_snapshot("found by the regular scan")
        elif (
            self._settings.quiet
            and self._watcher.is_dirty
            and now - self._watcher.last_activity >= self._settings.quiet
        ):
            self._tasks.take_quiet_snapshot("")
        if now - self._retried >= _UNSTORED_INTERVAL:
            self._retried = now
            self._tasks.retry_unstored()
        if now - self._collected >= COLLECT_INTERVAL:
            self._collected = now
            self._tasks.collect_on_schedule()
        self._tasks.empty_staging()
        self._tasks.count_lines()
