"""What agents of neighbours said and did: data of others, in its order, and bounded."""

import json
from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from freehold.agents.visible_text import make_visible
from freehold.slots.orchestrator.contract import RunEvent

MAX_EVENTS = 500
"""Events of one job."""
MAX_EVENT = 64 * 1024
MAX_LENGTH = 4 * 1024 * 1024
"""Characters of the events of one job."""
MAX_ANSWER = 512 * 1024
"""Characters of the events of one answer."""
MAX_DEPTH = 30
"""Lists and objects in one another."""
MAX_JOBS = 70
"""Jobs whose events are held: all that go on, and those that were looked at last."""


@dataclass
class _Kept:
    events: deque[tuple[int, dict[str, Any]]] = field(default_factory=deque)
    length: int = 0
    last: int = 0


def bound_events(events: Iterable[RunEvent]) -> tuple[RunEvent, ...]:
    """The first ones, as many as one answer can have. Of one that the other side would not keep, its data is left out."""
    found: list[RunEvent] = []
    left = MAX_ANSWER
    for one in events:
        length = len(json.dumps(dict(one.data), ensure_ascii=False))
        found.append(one if length <= MAX_EVENT else replace(one, data={}))
        left -= length if length <= MAX_EVENT else 0
        if left <= 0:
            break
    return tuple(found)


class WorkEvents:
    """In memory only. The oldest events of a job, and the jobs that were used longest ago, make place."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, _Kept] = OrderedDict()

    def __contains__(self, id: str) -> bool:
        return id in self._jobs

    def last(self, id: str) -> int:
        """The number of the last event."""
        return self._jobs[id].last if id in self._jobs else 0

    def list(self, id: str) -> list[dict[str, Any]]:
        return [one for _, one in self._jobs[id].events] if id in self._jobs else []

    def take(self, id: str, found: Mapping[str, Any]) -> bool:
        """Keeps those of an answer that are what they should be. Whether there were any."""
        kept = self._open(id)
        events = found.get("events")
        before = kept.last
        for one in events if isinstance(events, list) else []:
            if isinstance(one, dict) and type(one.get("seq")) is int and kept.last < one["seq"] < 2**53:
                self._keep(kept, one)
        return kept.last != before

    def adopt(self, id: str, other: "WorkEvents") -> None:
        """Keeps the events of a job as another one has them, instead of those that were kept."""
        self._jobs[id] = other._open(id)
        self._open(id)

    def _open(self, id: str) -> _Kept:
        kept = self._jobs.setdefault(id, _Kept())
        self._jobs.move_to_end(id)
        while len(self._jobs) > MAX_JOBS:
            self._jobs.popitem(last=False)
        return kept

    def _keep(self, kept: _Kept, one: dict[str, Any]) -> None:
        data = one.get("data")
        if not isinstance(data, dict) or is_deep(data):
            data = {}
        length = len(json.dumps(data, ensure_ascii=False))
        data = data if length <= MAX_EVENT else {}
        at, kind = (show_text(one.get(name), 40) for name in ("at", "kind"))
        event = {"seq": one["seq"], "at": at, "kind": kind, "data": data}
        length = length if data else 0
        kept.events.append((length, event))
        kept.length, kept.last = kept.length + length, one["seq"]
        while len(kept.events) > MAX_EVENTS or kept.length > MAX_LENGTH:
            dropped, _ = kept.events.popleft()
            kept.length -= dropped


def show_text(value: object, limit: int) -> str:
    """A short text of another side for one line. What is no text is left out: to write that down could take no end."""
    return make_visible(value[:limit], lines=False) if isinstance(value, str) else ""


def is_deep(value: object) -> bool:
    """Whether it is nested deeper than it can be passed on."""
    level: list[object] = [value]
    for _ in range(MAX_DEPTH):
        level = [below for one in level for below in _parts_of(one)]
    return bool(level)


def _parts_of(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
