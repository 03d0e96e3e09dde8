"""What neighbours are told of an event of the timeline: that it happened, when, and to what. No words of anybody."""

import json
import re
from typing import Any

from freehold.timeline import TimelineEvent

IDS = frozenset(("id", "session", "turn", "run", "work", "workflow", "entry", "approval", "step", "parent", "sequence"))
"""The fields that hold ids. Whatever is added to events later is not told before it is named here."""
_ID = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def write_published_event(event: TimelineEvent) -> str:
    """The content of an `AGENT_EVENT`: the kind, the time and the ids."""
    ids = {name: value for name, value in event.data.items() if name in IDS and _is_id(value)}
    return json.dumps({"kind": event.kind, "at": event.at, "data": ids}, ensure_ascii=False)


def _is_id(value: Any) -> bool:
    return type(value) is int or (isinstance(value, str) and _ID.fullmatch(value) is not None)
