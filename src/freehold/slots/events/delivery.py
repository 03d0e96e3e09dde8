"""Sends the log to one sink: in order, at least once, across crashes and long absences of the sink."""

import asyncio
import json
import logging
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from freehold.errors import FreeholdError
from freehold.slots.events.cloud_event import OWN_TYPES, CloudEvent, matches, read_event
from freehold.slots.events.contract import DeliveryState, DeliveryStatus
from freehold.slots.events.log import EventLog
from freehold.slots.events.sink import EventSink, SinkAway, SinkRefused
from freehold.timeline import Timeline

BATCH = 50
"""How many events are sent before the position is stored. After a crash at most these are sent twice."""
MIN_DELAY, MAX_DELAY = 0.5, 300.0
MAX_REFUSALS = 3
"""How often an event is tried that the sink refuses."""
MAX_ANSWERED = 12
"""How often an event is tried on which the sink answers with a failure of its own: about half an hour."""
MAX_DEAD = 10_000
FULL_SHARE = 0.8
CHECK_INTERVAL = 60.0
"""Seconds between two questions whether the sink is there."""
ONLY_SINK = "sink"

log = logging.getLogger("freehold.slots")


@dataclass
class _Progress:
    delivered: int = 0
    dropped: int = 0


class SinkDelivery:
    """`run` in one process. `status` tells how far it is, in any process."""

    def __init__(
        self,
        sink: EventSink,
        events: EventLog,
        timeline: Timeline,
        kinds: Sequence[str],
        in_thread: Callable[..., Awaitable[Any]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.sink = sink
        self._log = events
        self._timeline = timeline
        self._kinds = kinds
        self._in_thread = in_thread
        self._clock = clock
        self._state: DeliveryState | None = None
        self._wake = asyncio.Event()
        self._retry_now = asyncio.Event()
        self._checked = float("-inf")
        self._check_error: str | None = None

    def wake(self) -> None:
        """There is something to send."""
        self._wake.set()

    def retry_now(self) -> None:
        """The owner wants it to be tried now."""
        self._retry_now.set()
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled. Raises FreeholdError when the timeline cannot be written."""
        progress = await self._in_thread(self._read_progress)
        try:
            while True:
                self._wake.clear()
                sent = await self._resend()
                sent = await self._send_next(progress) or sent
                if not sent:
                    await self._wake.wait()
        finally:
            await self.sink.close()

    async def health(self) -> str | None:
        """What the owner should know: the sink is away, or the log is nearly full. None when all is well."""
        status: DeliveryStatus = await self._in_thread(self.status)
        if status.state == "ok" and time.monotonic() - self._checked > CHECK_INTERVAL:
            self._checked = time.monotonic()
            try:
                await self.sink.check()
                self._check_error = None
            except SinkAway as away:
                self._check_error = f"The {self.sink.kind} cannot be reached: {away}"
        size = await self._in_thread(self._log.size_after, status.delivered)
        ends = await self._in_thread(self._log.ends)
        if status.waiting and (size > FULL_SHARE * self._log.max_bytes or ends.first > status.delivered + 1):
            return (
                f"{status.waiting} events wait for the {self.sink.kind}, and the log is nearly full: then the oldest are"
                " dropped. slots.events.settings.max_mb sets its size"
            )
        if status.state == "away":
            return f"The {self.sink.kind} takes no events: {status.error}. {status.waiting} events wait"
        return self._check_error

    def status(self) -> DeliveryStatus:
        """Blocking."""
        progress, ends = self._read_progress(), self._log.ends()
        rows = self._timeline.query("SELECT state, since, error FROM events_sink WHERE name = ?", (ONLY_SINK,))
        state, since, error = rows[0] if rows else ("ok", 0.0, None)
        ((dead,),) = self._timeline.query("SELECT count(*) FROM events_dead")
        return DeliveryStatus(
            self.sink.kind,
            self.sink.target,
            state,
            since,
            progress.delivered,
            max(0, ends.last - progress.delivered),
            dead,
            progress.dropped,
            error,
        )

    def begin_at(self, sequence: int) -> None:
        """A sink that is new gets the events from now on. Blocking, idempotent."""
        with self._timeline.transaction() as tx:
            tx.execute(
                "INSERT INTO events_sink (name, delivered, dropped, state, since) VALUES (?, ?, 0, 'ok', ?)"
                " ON CONFLICT DO NOTHING",
                (ONLY_SINK, sequence, self._clock()),
            )

    async def _send_next(self, progress: _Progress) -> bool:
        """Sends some events. Returns whether there may be more."""
        part = await self._in_thread(self._log.read, progress.delivered, BATCH)
        if part.missed:
            await self._in_thread(self._note_dropped, progress, part.missed)
        if part.reached == progress.delivered:
            return False
        try:
            for event in part.events:
                if self._is_wanted(event):
                    await self._deliver(event)
                progress.delivered = event.sequence
        finally:
            # Also when it is cancelled: what was sent is not sent again.
            await asyncio.shield(self._in_thread(self._store_progress, progress))
        return True

    async def _resend(self) -> bool:
        rows = await self._in_thread(
            self._timeline.query,
            "SELECT sequence, event FROM events_dead WHERE again = 1 ORDER BY sequence LIMIT ?",
            (BATCH,),
        )
        for sequence, text in rows:
            await self._deliver(read_event(json.loads(text)))
            await self._in_thread(self._change, "DELETE FROM events_dead WHERE sequence = ? AND again = 1", (sequence,))
        return bool(rows)

    async def _deliver(self, event: CloudEvent) -> None:
        """Returns when the sink has the event, or when it is a dead letter."""
        delay, refused, answered = MIN_DELAY, 0, 0
        while True:
            try:
                await self.sink.send(event)
            except SinkRefused as error:
                refused += 1
                if refused >= MAX_REFUSALS:
                    await self._in_thread(self._bury, event, str(error))
                    return
                wait = MIN_DELAY
            except SinkAway as error:
                answered += error.answered
                if answered >= MAX_ANSWERED:
                    await self._in_thread(self._bury, event, str(error))
                    return
                await self._set_state("away", str(error))
                wait, delay = max(delay, error.wait), min(MAX_DELAY, delay * 2)
            else:
                await self._set_state("ok", None)
                return
            await self._pause(wait * random.uniform(0.75, 1.0))  # noqa: S311 - not a secret

    async def _pause(self, seconds: float) -> None:
        """Shorter when the owner asks. New events do not make it shorter: they come all the time."""
        self._retry_now.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._retry_now.wait()
        except TimeoutError:
            pass

    def _is_wanted(self, event: CloudEvent) -> bool:
        """The log may have more than what is sent, from a time when it was kept here only."""
        if event.imported or not event.type.startswith(OWN_TYPES):
            return not event.imported
        return any(matches(pattern, event.type.removeprefix(OWN_TYPES)) for pattern in self._kinds)

    async def _set_state(self, state: DeliveryState, error: str | None) -> None:
        """The owner is told once when the sink is lost and once when it is back."""
        if state == self._state:
            return
        self._state = state
        try:
            await self._in_thread(self._store_state, state, error)
        except FreeholdError as problem:
            log.warning(
                "the state of a sink could not be recorded", extra={"sink": self.sink.kind, "error": problem.message}
            )

    def _store_state(self, state: DeliveryState, error: str | None) -> None:
        with self._timeline.transaction() as tx:
            changed = tx.execute(
                "UPDATE events_sink SET state = ?, since = ?, error = ? WHERE name = ? AND state <> ?",
                (state, self._clock(), None if error is None else error[:500], ONLY_SINK, state),
            ).rowcount
            if changed and state == "away":
                tx.append("events.sink_lost", {"sink": self.sink.kind, "reason": (error or "")[:300]})
            elif changed:
                tx.append("events.sink_recovered", {"sink": self.sink.kind})

    def _bury(self, event: CloudEvent, error: str) -> None:
        """The letter and the event that tells the owner are stored together. The oldest letters make place."""
        with self._timeline.transaction() as tx:
            tx.execute(
                "INSERT INTO events_dead (sequence, at, error, event, again) VALUES (?, ?, ?, ?, 0)"
                " ON CONFLICT (sequence) DO UPDATE SET at = excluded.at, error = excluded.error, again = 0",
                (event.sequence, self._clock(), error[:500], json.dumps(event.as_json())),
            )
            tx.execute(
                "DELETE FROM events_dead WHERE sequence IN"
                " (SELECT sequence FROM events_dead ORDER BY sequence DESC LIMIT -1 OFFSET ?)",
                (MAX_DEAD,),
            )
            tx.append("events.dead_letter", {"sequence": event.sequence, "type": event.type, "reason": error[:300]})

    def _note_dropped(self, progress: _Progress, count: int) -> None:
        progress.dropped += count
        progress.delivered += count
        with self._timeline.transaction() as tx:
            tx.execute(
                "UPDATE events_sink SET dropped = ?, delivered = ? WHERE name = ?",
                (progress.dropped, progress.delivered, ONLY_SINK),
            )
            tx.append("events.dropped", {"count": count, "sink": self.sink.kind})

    def _read_progress(self) -> _Progress:
        rows = self._timeline.query("SELECT delivered, dropped FROM events_sink WHERE name = ?", (ONLY_SINK,))
        return _Progress(*rows[0]) if rows else _Progress()

    def _store_progress(self, progress: _Progress) -> None:
        self._change("UPDATE events_sink SET delivered = ? WHERE name = ?", (progress.delivered, ONLY_SINK))

    def _change(self, sql: str, parameters: tuple[Any, ...]) -> None:
        with self._timeline.transaction() as tx:
            tx.execute(sql, parameters)
