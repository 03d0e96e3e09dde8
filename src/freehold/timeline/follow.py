"""New events as they come, from whichever process wrote them."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from freehold.timeline.event import Event
from freehold.timeline.timeline import Timeline
from freehold.timeline.wakeup import Wakeup

PAGE = 500


async def follow_events(path: Path, after: int | None, kinds: Sequence[str]) -> AsyncGenerator[Event, None]:
    """Asks SQLite's data version, which costs microseconds and sees every process; reads only when it has moved."""
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
                while found := await asyncio.to_thread(own.read, after, kinds=kinds, limit=PAGE):
                    for event in found:
                        yield event
                    after = found[-1].seq
    finally:
        own.close()


def _number(timeline: Timeline, sql: str) -> int:
    ((number,),) = timeline.query(sql)
    return int(number)
