"""Whether systemd keeps a Freehold running: it starts a keeper again that has ended, whatever the reason."""

from pathlib import Path

from freehold.errors import FreeholdError
from freehold.home import Home
from freehold.keeper.calls import GetKeeperStatus
from freehold.keeper.client import call_keeper


def is_run_by_systemd(home: Home) -> bool:
    """False also when nothing runs."""
    try:
        pid = call_keeper(home, GetKeeperStatus()).keeper.pid
        variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except (FreeholdError, OSError):
        return False
    return f"SYSTEMD_EXEC_PID={pid}".encode() in variables
