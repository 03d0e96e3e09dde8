"""Brings events from the timeline into the log. The timeline is the outbox: what it has committed is told, in its order."""

import json
import logging
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from freehold.slots.contract import CleanLeaving
from freehold.slots.events.cloud_event import CloudEvent, from_timeline
from freehold.slots.events.contract import PublishEvent
from freehold.slots.events.log import GROUP, EventLog, let_others_run
from freehold.slots.statement import places
from freehold.timeline import Timeline, TimelineEvent

BATCH = 500
MAX_FORGOTTEN = 30_000
"""Published events whose content is removed at once: more than come until the next time."""
PUBLISHED = PublishEvent.event
_OWN = "events."

log = logging.getLogger("freehold.slots")


_Position: TypeAlias = tuple[int, int, str]
"""The timeline event and the event of the log that were reached, and the source of this log."""


class EventPump:
    """Blocking. Any process may run it at any time: the lock of the log makes them take turns.

    The file `position.json` says how far the log on the disk is, at least. The log itself shows the rest, also after a
    crash: each line has the number of its timeline event. What a power loss takes from the end of the log comes again,
    with the same numbers, because the timeline still has it.
    """

    def __init__(self, folder: Path, events: EventLog, timeline: Timeline, kinds: Sequence[str]) -> None:
        self._position = folder / "position.json"
        self._log = events
        self._timeline = timeline
        self._kinds = [] if "*" in kinds else [*kinds, PUBLISHED]
        self._done: int | None = None
        """The last timeline event that this process knows to be in the log, or not wanted there."""
        self._known: _Position | None = None
        """How far the log was when this process has left it."""
        self.clean: CleanLeaving = list
        """The privacy filter, for events of the timeline. What was published has passed it already."""

    def prepare(self) -> None:
        """A new log begins with the next event of the timeline. Idempotent."""
        self.save()
        self.forget()

    def run(self) -> bool:
        """Brings everything that is new. Returns whether the log has grown. It is on the disk after `save`."""
        if self.find_head() == self._done:
            return False
        grown = False
        with self._log.locked():
            reached, last, source = self._read_position()
            head = self.find_head()
            while reached < head:
                found = self._timeline.read(reached, until=head, kinds=self._kinds, limit=BATCH)
                events = self._make_events(found, source)
                if events:
                    last = self._log.append(events, sync=False)
                    grown = True
                reached = found[-1].seq if len(found) == BATCH else head
                self._known = reached, last, source
            self._done = head
        return grown

    def save(self) -> None:
        """Brings the log to the disk, and then the position."""
        with self._log.locked():
            position = self._read_position()
            self._log.sync()
            self._write_position(*position)
            self._known = position

    def forget(self) -> None:
        """Removes the content of published events that the log has, on the disk."""
        ids = [row[0] for row in self._timeline.query("SELECT id FROM events_content LIMIT ?", (MAX_FORGOTTEN,))]
        self.run()  # what was committed before is in the log now
        self.save()
        if ids:
            with self._timeline.transaction() as tx:
                tx.execute(f"DELETE FROM events_content WHERE id IN {places(ids)}", ids)  # noqa: S608 - question marks

    def _make_events(self, found: Sequence[TimelineEvent], source: str) -> list[CloudEvent]:
        content = self._read_content([_id_of(event) for event in found if event.kind == PUBLISHED])
        own = [event for event in found if not event.kind.startswith(_OWN)]
        clean = dict(zip((event.seq for event in own), self.clean([_leaving(event) for event in own]), strict=True))
        made = []
        for number, event in enumerate(found, 1):
            if number % GROUP == 0:
                let_others_run()
            if event.seq in clean:
                data, who = clean[event.seq].get("data", clean[event.seq]), clean[event.seq].get("who", "somebody")
                made.append(from_timeline(replace(event, data=data, who=who), source))
            elif event.kind == PUBLISHED:
                row = content.get(_id_of(event))
                if row is None:
                    log.warning("the content of a published event is missing", extra={"seq": event.seq})
                    continue
                type, subject, data = row
                made.append(
                    CloudEvent(
                        0, _id_of(event), source, type, event.at, event.who, json.loads(data), subject, event.seq
                    )
                )
        return made

    def _read_content(self, ids: Sequence[str]) -> dict[str, tuple[str, str | None, str]]:
        if not ids:
            return {}
        rows = self._timeline.query(
            f"SELECT id, type, subject, data FROM events_content WHERE id IN {places(ids)}",  # noqa: S608
            ids,
        )
        return {row[0]: (row[1], row[2], row[3]) for row in rows}

    def find_head(self) -> int:
        """The last event of the timeline."""
        ((head,),) = self._timeline.query("SELECT seq FROM head")
        return int(head)

    def _read_position(self) -> "_Position":
        ends = self._log.ends()
        known = self._known
        if known is not None and known[1] == ends.last:
            return known
        reached, last, source = self._stored_position()
        if known is not None and last < known[1] <= ends.last:
            reached, last, source = known
        while last < ends.last:  # another process, or one before a crash, has brought these
            part = self._log.read(last, BATCH)
            for event in part.events:
                if event.timeline is not None:
                    reached, source = max(reached or 0, event.timeline), event.source
            last = part.reached
        if reached is None:
            reached = self.find_head()
        return reached, min(last, ends.last), source or f"urn:uuid:{uuid.uuid4()}"

    def _stored_position(self) -> tuple[int | None, int, str | None]:
        try:
            found = json.loads(self._position.read_text())
            return int(found["timeline"]), int(found["log"]), str(found["source"])
        except (OSError, ValueError, KeyError, TypeError):
            return None, 0, None

    def _write_position(self, reached: int, last: int, source: str) -> None:
        """Replaced in one step. After a power loss an older one is enough."""
        draft = self._position.with_name(".position.new")
        draft.write_text(json.dumps({"timeline": reached, "log": last, "source": source}))
        draft.replace(self._position)


def read_kinds(text: str) -> tuple[str, ...]:
    """The kinds of a setting such as `session.*, history.undone`."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _leaving(event: TimelineEvent) -> Mapping[str, Any]:
    return {"data": event.data, "who": event.who}


def _id_of(event: TimelineEvent) -> str:
    return str(event.data.get("id"))
