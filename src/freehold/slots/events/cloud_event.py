"""One event as CloudEvents 1.0 writes it, and how a timeline event becomes one."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from freehold.strict_json import IsoTime, WrongShape, decode
from freehold.timeline.event import TimelineEvent

SEQUENCE_DIGITS = 16
OWN_TYPES = "org.freehold."
"""How the type of an event begins that Freehold itself makes."""
PREFIX = '{"sequence":"'
_encode = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(frozen=True)
class CloudEvent:
    """`source` and `id` together name an event. `sequence` is its place in the log of this Freehold.

    `actor` is who did it, as in the timeline. An `imported` event was told by another log, so it is not sent again.
    """

    sequence: int
    id: str
    source: str
    type: str
    time: IsoTime
    actor: str
    data: Mapping[str, object]
    subject: str | None = None
    timeline: int | None = None
    imported: bool = False

    def as_json(self, sequence: int | None = None) -> dict[str, Any]:
        """The structured form of CloudEvents. The names of extensions have only small letters."""
        found: dict[str, Any] = {
            "sequence": f"{self.sequence if sequence is None else sequence:0{SEQUENCE_DIGITS}}",
            "specversion": "1.0",
            "id": self.id,
            "source": self.source,
            "type": self.type,
            "time": self.time,
            "datacontenttype": "application/json",
            "actor": self.actor,
        }
        if self.subject is not None:
            found["subject"] = self.subject
        if self.timeline is not None:
            found["timelineseq"] = self.timeline
        if self.imported:
            found["imported"] = True
        found["data"] = dict(self.data)
        return found

    def as_line(self, sequence: int) -> bytes:
        """One line of the log, in which it has this number.

        The number comes first, at a fixed place, so that a reader can search for it.
        """
        return _encode(self.as_json(sequence)).encode() + b"\n"


@dataclass(frozen=True)
class _Written:
    sequence: str
    specversion: str
    id: str
    source: str
    type: str
    time: str
    actor: str
    data: Mapping[str, object]
    datacontenttype: str = "application/json"
    subject: str | None = None
    timelineseq: int | None = None
    imported: bool = False


def read_event(value: object) -> CloudEvent:
    """The event of a JSON object that `as_json` has written. Raises WrongShape."""
    found = decode(_Written, value)
    if found.specversion != "1.0":
        raise WrongShape(f"specversion is {found.specversion[:20]!a}, not 1.0")
    if not (found.sequence.isascii() and found.sequence.isdigit() and len(found.sequence) <= SEQUENCE_DIGITS):
        raise WrongShape("sequence is not a number of at most 16 digits")
    return CloudEvent(
        int(found.sequence),
        found.id,
        found.source,
        found.type,
        found.time,
        found.actor,
        found.data,
        found.subject,
        found.timelineseq,
        found.imported,
    )


def from_timeline(event: TimelineEvent, source: str) -> CloudEvent:
    """Not numbered yet."""
    return CloudEvent(
        sequence=0,
        id=str(event.seq),
        source=source,
        type=OWN_TYPES + event.kind,
        time=event.at,
        actor=event.who,
        data=event.data,
        subject=_find_subject(event),
        timeline=event.seq,
    )


def _find_subject(event: TimelineEvent) -> str | None:
    """What the event is about: its session, or the thing of its room that it names."""
    session, id = event.data.get("session"), event.data.get("id")
    if isinstance(session, str):
        return f"sessions/{session}"
    return f"{event.kind.partition('.')[0]}/{id}" if isinstance(id, str) else None


def is_own_type(type: str) -> bool:
    """Whether a type is Freehold's own, or looks like it."""
    return f"{type.lower()}.".startswith(OWN_TYPES)


def matches(pattern: str, type: str) -> bool:
    """Whether a type is `pattern`, or begins with it when it ends with `.*`. `*` matches everything."""
    return pattern in ("*", type) or (pattern.endswith(".*") and type.startswith(pattern[:-1]))
