"""The event loop: one thread, one epoll. Runs descriptors, timers and long jobs in slices, so that none blocks another."""

from __future__ import annotations

import _heapq as heapq
import select
import sys
import time

from freehold.guest.kernel import deque, os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

READ = select.EPOLLIN
WRITE = select.EPOLLOUT
HANG_UP = select.EPOLLHUP | select.EPOLLERR
SLICE = 0.005
"""Seconds that a job may run before the others run."""
LONGEST_DELAY = 10.0 * 365 * 24 * 3600
LONGEST_POLL = 3600.0
MAX_LOG_LINE = 500


class Timer:
    __slots__ = ("action", "at")

    def __init__(self, at: float, action: Callable[[], None]) -> None:
        self.at = at
        self.action: Callable[[], None] | None = action

    def cancel(self) -> None:
        self.action = None

    def __lt__(self, other: Timer) -> bool:
        return self.at < other.at


class Loop:
    """`watch` descriptors, `call_later` functions, `add_job` for iterators that run a slice at a time."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._handlers: dict[int, Callable[[int], None]] = {}
        self._timers: list[Timer] = []
        self._jobs: deque[Iterator[bool]] = deque()
        self._after: list[Callable[[], None]] = []
        self.running = True

    def watch(self, descriptor: int, events: int, handler: Callable[[int], None]) -> None:
        if descriptor in self._handlers:
            self._epoll.modify(descriptor, events)
        else:
            self._epoll.register(descriptor, events)
        self._handlers[descriptor] = handler

    def forget(self, descriptor: int) -> None:
        """Stop watching. Must be called before the descriptor is closed. Idempotent."""
        if self._handlers.pop(descriptor, None) is not None:
            try:
                self._epoll.unregister(descriptor)
            except OSError:
                return

    def call_later(self, seconds: float, action: Callable[[], None]) -> Timer:
        # A delay that is not a number would disorder the timers, and epoll refuses one without end.
        timer = Timer(time.monotonic() + (seconds if seconds < LONGEST_DELAY else LONGEST_DELAY), action)
        heapq.heappush(self._timers, timer)
        return timer

    def call_after_round(self, action: Callable[[], None]) -> None:
        """Call once after the current round of events. Frames of one round are sent with one write."""
        self._after.append(action)

    def add_job(self, job: Iterator[bool]) -> None:
        """Run an iterator between events. It yields False where it may be interrupted, and True when it must wait.

        To wake a waiting job, add it again.
        """
        self._jobs.append(job)

    def run(self) -> None:
        while self.running:
            for descriptor, events in self._epoll.poll(self._next_timeout(), 128):
                handler = self._handlers.get(descriptor)
                if handler is not None:
                    self._guard(handler, events)
            self._run_timers()
            self._run_jobs()
            while self._after:
                pending, self._after = self._after, []
                for action in pending:
                    self._guard(action)

    def _next_timeout(self) -> float:
        if self._jobs or self._after:
            return 0
        while self._timers and self._timers[0].action is None:
            heapq.heappop(self._timers)
        if not self._timers:
            return -1
        return min(max(0.0, self._timers[0].at - time.monotonic()), LONGEST_POLL)

    def _run_timers(self) -> None:
        if not self._timers:
            return
        now = time.monotonic()
        while self._timers and self._timers[0].at <= now:
            action = heapq.heappop(self._timers).action
            if action is not None:
                self._guard(action)

    def _run_jobs(self) -> None:
        for _ in range(len(self._jobs)):
            job = self._jobs.popleft()
            limit = time.monotonic() + SLICE
            try:
                for must_wait in job:
                    if must_wait:
                        break
                    if time.monotonic() >= limit:
                        self._jobs.append(job)
                        break
            except Exception as error:
                log_error(error)

    def _guard(self, action: Callable[..., None], *arguments: int) -> None:
        try:
            action(*arguments)
        except Exception as error:
            log_error(error)


def log_error(error: BaseException) -> None:
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = f"{place.tb_frame.f_code.co_name}:{place.tb_lineno}" if place is not None else "?"
    log_line(f"{type(error).__name__} in {where}: {error}")


def log_line(words: str) -> None:
    """Write one short line to stderr, which the backend keeps. Never raises, and never waits: a full pipe drops it."""
    try:
        os.write(
            sys.__stderr__.fileno() if sys.__stderr__ else 2,
            f"guest: {words[:MAX_LOG_LINE]}\n".encode(errors="replace"),
        )
    except (OSError, ValueError, MemoryError):
        return
