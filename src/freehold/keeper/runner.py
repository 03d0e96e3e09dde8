"""Runs a keeper in this process until it stops."""

from __future__ import annotations

import contextlib
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

M_ARENA_MAX = -8
SWITCH_INTERVAL = 0.001
"""How often, in seconds, Python switches threads. Short, so that a snapshot does not delay the page and the socket."""


def run_keeper(home: Home, settings: KeeperSettings | None = None, announce: Announce | None = None) -> None:
    """Returns after a requested stop; raises FreeholdError when the keeper cannot start."""
    sys.setswitchinterval(SWITCH_INTERVAL)
    _share_arenas()
    # Another process reads the manifest while this one imports the rest of the keeper.
    plan_reader = PlanReader(home)
    import asyncio

    from freehold.keeper.keeper import Keeper
    from freehold.keeper.started_process import EarlyProcess, gateway_command, program_environment

    # The gateway loads its modules while the keeper reads the manifest and starts the computer.
    early_gateway = EarlyProcess(gateway_command(home), program_environment())

    async def run() -> None:
        await Keeper(home, settings, announce, plan_reader, early_gateway).run()

    try:
        asyncio.run(run())
    except FreeholdError:
        raise
    except Exception:
        raise _log_bug(home) from None


def _share_arenas() -> None:
    """Let all threads take their memory from one heap. glibc gives each thread its own, with space that stays unused."""
    import ctypes

    with contextlib.suppress(AttributeError):  # another C library
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


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
