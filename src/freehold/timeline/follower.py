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
        head = await asyncio.to_thread(_number, own, "SELECT seq FROM head")
        after = head if after is None else after
        seen = -1
        with Wakeup(path) as wakeup:
            while True:
                version = await asyncio.to_thread(_number, own, "PRAGMA data_version")
                if version == seen:
                    await wakeup.pause()
                    continue
                seen = version
                while found := await asyncio.to_thread(own.read, after, kinds=kinds, limit=PAGE_ROWS):
                    for event in found:
                        yield event
                    after = found[-1].seq
    finally:
        own.close()


def _number(timeline: Timeline, sql: str) -> int:
    ((number,),) = timeline.query(sql)
    return int(number)
