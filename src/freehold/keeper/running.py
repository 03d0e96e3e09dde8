"""Running a keeper to its end in this process."""

import asyncio
import sys

from freehold.home import Home
from freehold.keeper.keeper import Keeper
from freehold.keeper.settings import KeeperSettings
from freehold.keeper.stages import Announce

# Threads that work hard (a snapshot, say) hand over this often, so that the page and the socket answer at once.
SWITCH = 0.001


def run_keeper(home: Home, settings: KeeperSettings | None = None, announce: Announce | None = None) -> None:
    """Returns after a clean stop; raises FreeholdError when it cannot start."""
    sys.setswitchinterval(SWITCH)

    async def keep() -> None:
        await Keeper(home, settings, announce).run()

    asyncio.run(keep())
