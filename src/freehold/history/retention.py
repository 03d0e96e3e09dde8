"""Decides when entries are dropped: by age, and by quota after the owner had time to react."""

import threading
import time
from collections.abc import Callable, Mapping

from freehold.history.garbage_collection import GarbageCollector
from freehold.history.model import CollectionResult
from freehold.history.notices import Notices
from freehold.history.retention_clock import DAY, RetentionClock

QUOTA_CODE = "history.quota-reached"
NEARLY_CODE = "history.quota-nearly"
CLOCK_CODE = "history.clock-ahead"
_NEARLY = 0.8


class Retention:
    """Collects entries and gives the notices about quota and clock. `read_quota` returns the bytes that history may use."""

    def __init__(
        self,
        lock: threading.RLock,
        collector: GarbageCollector,
        clock: RetentionClock,
        notices: Notices,
        read_quota: Callable[[], int],
        grace: float,
    ) -> None:
        self._lock = lock
        self._collector = collector
        self._clock = clock
        self._notices = notices
        self._read_quota = read_quota
        self._grace = grace
        self._until_check = 0.0

    def collect(self, now: float | None = None) -> CollectionResult:
        """Thin old entries, then drop the oldest ones if the quota is exceeded and the owner was told `grace` seconds ago."""
        quota = self._read_quota()
        told = self._notices.read_times()
        before = self._collector.measure_used()
        thinned = self._collector.thin_entries(self._read_age_clock(told) if now is None else now)
        self._collector.remove_unreferenced()
        dropped = 0
        waiting = False
        used = self._collector.measure_used()
        if used > quota:
            moment = time.time() if now is None else now
            if QUOTA_CODE not in told:
                self._tell_exceeded(used, quota)
            if moment - told.get(QUOTA_CODE, moment) >= self._grace:
                dropped = self._collector.drop_oldest(quota)
            else:
                waiting = True
        used = self._collector.measure_used()
        self._until_check = 0.0
        result = CollectionResult(thinned, dropped, max(0, before - used), used, quota, waiting)
        self._update_notices(result, told)
        return result

    def tell_if_crossed(self, added: int) -> None:
        """Called after each snapshot with the bytes that it added: the owner is told at once, not at the next collection."""
        self._until_check -= added
        if self._until_check > 0:
            return
        quota, used = self._read_quota(), self._collector.measure_used()
        told = self._notices.read_times()
        if used > quota and QUOTA_CODE not in told:
            self._tell_exceeded(used, quota)
        elif used > quota * _NEARLY and NEARLY_CODE not in told and QUOTA_CODE not in told:
            self._tell_nearly(used)
        self._until_check = next((quota * part - used for part in (_NEARLY, 1.0) if used <= quota * part), quota / 8)

    def _tell_exceeded(self, used: int, quota: int) -> None:
        self._notices.add(
            QUOTA_CODE,
            f"History uses {used:,} bytes; its quota is {quota:,}. The oldest entries will be dropped",
            "To keep them, raise history.quota in freehold.toml",
        )

    def _tell_nearly(self, used: int) -> None:
        self._notices.add(
            NEARLY_CODE,
            f"History uses {used:,} bytes, more than 80 % of its quota",
            "Raise history.quota in freehold.toml",
        )

    def _update_notices(self, result: CollectionResult, told: Mapping[str, float]) -> None:
        if result.used <= result.quota and QUOTA_CODE in told:
            self._notices.remove(QUOTA_CODE)
        if result.used > result.quota * _NEARLY and not result.waiting:
            if NEARLY_CODE not in told:
                self._tell_nearly(result.used)
        elif NEARLY_CODE in told:
            self._notices.remove(NEARLY_CODE)

    def _read_age_clock(self, told: Mapping[str, float]) -> float:
        with self._lock:
            now = self._clock.advance()
        if self._clock.behind > DAY:
            if CLOCK_CODE not in told:
                self._notices.add(
                    CLOCK_CODE,
                    f"The clock is {self._clock.behind / DAY:.0f} days ahead of the time that history has counted. "
                    "Old entries are thinned only as time passes",
                    "If the machine was off that long, do nothing. Otherwise set its clock",
                )
        elif CLOCK_CODE in told:
            self._notices.remove(CLOCK_CODE)
        return now
