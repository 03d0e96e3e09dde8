"""Records every decision in the timeline without ever filling the disk.

The first decision of a kind is written before the connection proceeds. The same decision within a minute is counted and
written as one event. Beyond a steady rate only totals and some examples are kept.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from freehold.observe.metrics import registry
from freehold.timeline import Json, Timeline

REPEAT_WINDOW = 60.0
EVENT_BURST = 120
EVENTS_PER_SECOND = 0.5
MAX_EXAMPLES = 20
MAX_RECENT = 100

Outcome = Literal[
    "connection_allowed",
    "connection_refused",
    "connection_revoked",
    "credential_used",
    "limit_neared",
    "request_refused",
]

decisions = registry.counter(
    "freehold_egress_decisions_total", "Decisions about connections out of the computer.", ["outcome"]
)


@dataclass(frozen=True)
class DecisionRecord:
    """Who wanted to connect where, the outcome and the reason."""

    outcome: Outcome
    who: str
    target: str
    reason: str
    rule: str = ""
    address: str = ""

    def as_json(self) -> dict[str, Json]:
        data: dict[str, Json] = {"target": self.target, "reason": self.reason}
        if self.rule:
            data["rule"] = self.rule
        if self.address:
            data["address"] = self.address
        return data


@dataclass(frozen=True)
class RecentDecision:
    """A decision with its time, for the list of recent ones."""

    at: str
    entry: DecisionRecord

    def as_json(self) -> dict[str, Json]:
        return {"at": self.at, "outcome": self.entry.outcome, "who": self.entry.who, **self.entry.as_json()}


@dataclass
class _Repeats:
    until: float
    count: int = 0


@dataclass
class _Sum:
    counts: dict[str, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)


class DecisionLog:
    """Writes decisions to the timeline and keeps the recent ones in memory."""

    def __init__(self, timeline: Timeline, clock: Callable[[], float] = time.monotonic) -> None:
        self._timeline = timeline
        self._clock = clock
        self._known: dict[DecisionRecord, _Repeats] = {}
        self._sum = _Sum()
        self._sum_due = 0.0
        self._tokens = float(EVENT_BURST)
        self._refilled = clock()
        self.recent: deque[RecentDecision] = deque(maxlen=MAX_RECENT)

    async def record(self, entry: DecisionRecord) -> None:
        """Returns when the decision is on disk, or counted with one that is. Raises when it cannot be written."""
        decisions.inc(outcome=entry.outcome)
        self.recent.append(
            RecentDecision(datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"), entry)
        )
        now = self._clock()
        known = self._known.get(entry)
        if known is not None and now < known.until:
            known.count += 1
        elif self._spend(now):
            repeats = known.count if known is not None else 0
            self._known[entry] = _Repeats(now + REPEAT_WINDOW)
            try:
                await asyncio.to_thread(self._write, [self._event(entry, repeats)])
            except BaseException:
                # It was not written, so the next one of its kind must not be counted with it.
                self._known.pop(entry, None)
                raise
        else:
            self._sum.counts[entry.outcome] = self._sum.counts.get(entry.outcome, 0) + 1
            if len(self._sum.examples) < MAX_EXAMPLES:
                self._sum.examples.append(entry.target)

    async def flush(self, *, everything: bool = False) -> None:
        """Writes the counts whose minute is over. Called every second, and with `everything` at shutdown."""
        now = self._clock()
        over = [(entry, repeats) for entry, repeats in self._known.items() if everything or now >= repeats.until]
        events = []
        for entry, repeats in over:
            del self._known[entry]
            if repeats.count:
                events.append(self._event(entry, repeats.count))
        if self._sum.counts and (everything or now >= self._sum_due):
            data: dict[str, Json] = {**self._sum.counts, "examples": list(self._sum.examples)}
            events.append(("egress.decisions_summed", data, "egress"))
            self._sum, self._sum_due = _Sum(), now + REPEAT_WINDOW
        if events:
            await asyncio.to_thread(self._write, events)

    @staticmethod
    def _event(entry: DecisionRecord, repeats: int) -> tuple[str, dict[str, Json], str]:
        data = entry.as_json()
        if repeats:
            data["repeated"] = repeats
        return f"egress.{entry.outcome}", data, entry.who

    def _spend(self, now: float) -> bool:
        self._tokens = min(float(EVENT_BURST), self._tokens + (now - self._refilled) * EVENTS_PER_SECOND)
        self._refilled = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def _write(self, events: list[tuple[str, dict[str, Json], str]]) -> None:
        with self._timeline.transaction() as tx:
            for kind, data, who in events:
                tx.append(kind, data, who=who)
