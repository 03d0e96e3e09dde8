"""Where the documentation says more about an error."""

from freehold.errors import FreeholdError
from freehold.home import Home

REPLY_TIMEOUT = 1.0
"""Seconds. The owner waits for the end of a command that has failed already."""


def find_error_page(home: Home, code: str) -> str:
    """The address of the page when the Freehold of this home runs, else its place in the control center."""
    from freehold.keeper.calls import GetKeeperStatus
    from freehold.keeper.client import call_keeper

    place = f"/docs/errors.html#{code}"
    try:
        status = call_keeper(home, GetKeeperStatus(), timeout=REPLY_TIMEOUT)
    except (FreeholdError, OSError):
        return f"{place} of the control center"
    is_served = any(one.name == "gateway" and one.state == "ready" for one in status.programs)
    return f"{status.url}{place}" if is_served else f"{place} of the control center"
