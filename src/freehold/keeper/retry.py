"""Tasks of the keeper's own: a bug in one of them is logged and it begins again; the keeper goes on."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)

PAUSE = 1.0


async def tended(name: str, work: Callable[[], Awaitable[None]], pause: float = PAUSE) -> None:
    """Run `work` to its end, however often it breaks before."""
    while True:
        try:
            await work()
        except Exception:
            log.exception("%s failed and begins again", name)
            await asyncio.sleep(pause)
        else:
            return
