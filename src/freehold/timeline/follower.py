"""Follows the timeline: new events of all processes, as they are written."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from freehold.timeline.event import TimelineEvent
from freehold.timeline.timeline import Timeline
from freehold.timeline.wakeup import Wakeup

PAGE_ROWS = 500


async def follow_events(path: Path, after: int | None, kinds: Sequence[str]) -> AsyncGenerator[TimelineEvent, None]:
    """Checks SQLite's data version, which takes microseconds and changes with the writes of every process, before it reads."""
    own = await asyncio.to_thread(Timeline, path, readonly=True)
    try:
        if after is None:
            after = await asyncio.to_thread(_number, own, "SELECT seq FROM head")
        seen = -1
        with Wakeup(path) as wakeup:
            while True:
                seen, found = await asyncio.to_thread(_read_new, own, seen, after, kinds)
                for event in found:
                    yield event
                if found:
                    after = found[-1].seq
                if len(found) < PAGE_ROWS:
                    await wakeup.pause()
                else:
                    seen = -1
    finally:
        own.close()


def _read_new(timeline: Timeline, seen: int, after: int, kinds: Sequence[str]) -> tuple[int, list[TimelineEvent]]:
    """The data version, and the events after `after` if it is not `seen`. One call: a change of threads costs more."""
    version = _number(timeline, "PRAGMA data_version")
    return version, [] if version == seen else timeline.read(after, kinds=kinds, limit=PAGE_ROWS)


def _number(timeline: Timeline, sql: str) -> int:
    ((number,),) = timeline.query(sql)
    return int(number)
