"""Running a keeper to its end in this process."""

from __future__ import annotations

import secrets
import sys
import traceback
from typing import TYPE_CHECKING

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.keeper.reading import Reading

if TYPE_CHECKING:
    from freehold.keeper.settings import KeeperSettings
    from freehold.keeper.stages import Announce

# Threads that work hard (a snapshot, say) hand over this often, so that the page and the socket answer at once.
SWITCH = 0.001


def run_keeper(home: Home, settings: KeeperSettings | None = None, announce: Announce | None = None) -> None:
    """Returns after a clean stop; raises FreeholdError when it cannot start."""
    sys.setswitchinterval(SWITCH)
    # The manifest is read while the rest of the keeper is imported.
    reading = Reading(home)
    import asyncio

    from freehold.keeper.keeper import Keeper

    async def keep() -> None:
        await Keeper(home, settings, announce, reading).run()

    try:
        asyncio.run(keep())
    except FreeholdError:
        raise
    except Exception:
        raise _noted_bug(home) from None


def _noted_bug(home: Home) -> FreeholdError:
    """What was being raised goes to the keeper's log, and only its id to the owner."""
    import time

    from freehold.keeper.logbook import Logbook
    from freehold.keeper.settings import LogLimits

    error_id = secrets.token_hex(6)
    with Logbook(home.logs, LogLimits(), time.time) as book:
        book.note("keeper", "error", f"the keeper failed [{error_id}]\n{traceback.format_exc()}")
    return FreeholdError(
        "keeper.bug", "Something failed inside the keeper", hint=f"freehold logs keeper shows it as {error_id}"
    )
