"""New events as they come, from whichever process wrote them."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from freehold.timeline.event import Event
from freehold.timeline.timeline import Timeline

INTERVAL = 0.05
PAGE = 500


async def follow_events(path: Path, after: int | None, kinds: Sequence[str]) -> AsyncGenerator[Event, None]:
    """Asks SQLite's data version, which costs microseconds and sees every process; reads only when it has moved."""
    own = await asyncio.to_thread(Timeline, path, readonly=True)
    try:
        if after is None:
            after = await asyncio.to_thread(_number, own, "SELECT seq FROM head")
        seen = -1
        while True:
            version = await asyncio.to_thread(_number, own, "PRAGMA data_version")
            if version == seen:
                await asyncio.sleep(INTERVAL)
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
