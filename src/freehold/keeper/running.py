"""Running a keeper to its end in this process."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

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

    asyncio.run(keep())
