"""Runs a keeper in this process until it stops."""

from __future__ import annotations

import secrets
import sys
import traceback
from typing import TYPE_CHECKING

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.keeper.plan_reader import PlanReader

if TYPE_CHECKING:
    from freehold.keeper.boot_stages import Announce
    from freehold.keeper.settings import KeeperSettings

SWITCH_INTERVAL = 0.001
"""How often, in seconds, Python switches threads. Short, so that a snapshot does not delay the page and the socket."""


def run_keeper(home: Home, settings: KeeperSettings | None = None, announce: Announce | None = None) -> None:
    """Returns after a requested stop; raises FreeholdError when the keeper cannot start."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    # Another process reads the manifest while this one imports the rest of the keeper.
    plan_reader = PlanReader(home)
    import asyncio

    from freehold.keeper.keeper import Keeper

    async def run() -> None:
        await Keeper(home, settings, announce, plan_reader).run()

    try:
        asyncio.run(run())
    except FreeholdError:
        raise
    except Exception:
        raise _log_bug(home) from None


def _log_bug(home: Home) -> FreeholdError:
    """Writes the traceback to the keeper's log; the error for the owner has only its id."""
    import time

    from freehold.keeper.log_writer import LogWriter
    from freehold.keeper.settings import LogLimits

    error_id = secrets.token_hex(6)
    with LogWriter(home.logs, LogLimits(), time.time) as log_writer:
        log_writer.note("keeper", "error", f"the keeper failed [{error_id}]\n{traceback.format_exc()}")
    return FreeholdError(
        "keeper.bug",
        "An internal error ended the keeper",
        hint=f"freehold logs keeper --error {error_id} shows the cause",
    )
