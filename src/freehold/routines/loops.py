"""Loops of the gateway's services that outlive an error, such as a disk that was full."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

from freehold.errors import FreeholdError

RETRY_DELAY = 5.0

log = logging.getLogger("freehold.routines")


async def keep_trying(act: Callable[[], Awaitable[object]]) -> None:
    """Until it succeeds."""
    while True:
        try:
            await act()
        except FreeholdError as error:
            log.warning("routines try again in a moment: %s", error)
            await asyncio.sleep(RETRY_DELAY)
        else:
            return


async def keep_going(loop: Callable[[], Awaitable[None]]) -> None:
    """Runs a loop again after whatever ended it."""
    while True:
        try:
            await loop()
        except FreeholdError as error:
            log.warning("routines try again in a moment: %s", error)
        except Exception:
            log.exception("routines try again in a moment")
        await asyncio.sleep(RETRY_DELAY)


async def keep_quiet(work: Awaitable[None]) -> None:
    """One piece of work that must not end the others."""
    try:
        await work
    except FreeholdError as error:
        log.warning("a run cannot be looked after: %s", error)
    except Exception:
        log.exception("a run cannot be looked after")
