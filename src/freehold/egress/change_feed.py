"""Follows changes that other processes, such as the command line, write to the timeline."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing

from freehold.errors import FreeholdError
from freehold.timeline import Timeline

RETRY_DELAY = 1.0

log = logging.getLogger(__name__)


async def reload_on_change(
    timeline: Timeline, after: int, kinds: Sequence[str], reload: Callable[[], Awaitable[None]]
) -> None:
    """Calls `reload` after each event of these kinds that follows event `after`. Runs until cancelled."""
    while True:
        try:
            async with aclosing(timeline.follow(after, kinds)) as events:
                async for event in events:
                    after = event.seq
                    await reload()
        except FreeholdError as error:
            log.warning("the timeline cannot be followed, trying again: %s", error)
            await asyncio.sleep(RETRY_DELAY)
