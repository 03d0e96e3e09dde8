"""How far a batch is: counts, the rate, and the time that is left."""

import time
from collections import deque
from dataclasses import dataclass

RATE_WINDOW = 200
"""The rate is that of so many last ends."""


@dataclass(frozen=True)
class BatchProgress:
    """`rate` is in tasks a second, and None until one has ended. `cost` is in US dollars, for work that has one.
    `waits_for` says why a task has no room in a fleet yet."""

    total: int
    done: int
    failed: int
    lost: int
    running: int
    waiting: int
    seconds: float
    rate: float | None
    seconds_left: float | None
    cost: float | None
    waits_for: str = ""


class RateMeter:
    """Counts the ends of this process. Time before the first one counts, too."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self._ends: deque[float] = deque([self.began], RATE_WINDOW)

    def count(self) -> None:
        self._ends.append(time.monotonic())

    def measure(self) -> float | None:
        span = time.monotonic() - self._ends[0]
        return (len(self._ends) - 1) / span if len(self._ends) > 1 and span > 0 else None


def describe_progress(progress: BatchProgress, budget: float | None = None) -> str:
    """One line for a terminal."""
    ended = progress.done + progress.failed + progress.lost
    parts = [f"{ended} of {progress.total}"]
    parts += [f"{count} {word}" for count, word in ((progress.failed, "failed"), (progress.lost, "lost")) if count]
    parts.append(f"{progress.running} running")
    if progress.rate is not None:
        slow = progress.rate < 1
        parts.append(f"{progress.rate * 60:.1f} a minute" if slow else f"{progress.rate:.1f} a second")
    if progress.seconds_left is not None:
        parts.append(f"{format_seconds(progress.seconds_left)} left")
    if progress.cost is not None:
        parts.append(f"cost {progress.cost:.4f}" + ("" if budget is None else f" of {budget:g}"))
    if progress.waits_for:
        parts.append(f"waits: {progress.waits_for}")
    return ", ".join(parts)


def format_seconds(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, hours = seconds / 60, seconds / 3600
    return f"{minutes:.0f} min" if minutes < 100 else f"{hours:.1f} h"
