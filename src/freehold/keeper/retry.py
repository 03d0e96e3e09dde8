"""Restarts the keeper's own tasks after an unexpected error, so that a bug in one does not end the keeper."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)

RETRY_PAUSE = 1.0


async def retry_until_done(name: str, work: Callable[[], Awaitable[None]], pause: float = RETRY_PAUSE) -> None:
    """Run `work` until it returns. An exception is logged, and the work starts again after `pause` seconds."""
    while True:
        try:
            await work()
        except Exception:
            log.exception("%s failed and starts again", name)
            await asyncio.sleep(pause)
        else:
            return
