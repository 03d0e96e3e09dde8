# made from _async/programs.py by python -m tools.generate
"""The programs that the keeper runs: `home.programs`."""

from freehold.client._sync.connection import SyncConnection
from freehold.client.program_models import ProgramListing, ProgramRestart, RetentionRuleInfo, RetentionRules
from freehold.client.topic_protocol import quote_segment

RESTART_TIMEOUT = 120.0


class SyncPrograms:
    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def state(self) -> ProgramListing:
        """All programs with restarts and memory, the ports, and the use of the computer."""
        return self._connection.get("/v1/programs", ProgramListing)

    def restart(self, name: str) -> ProgramRestart:
        """Restart a program. Needs the scope `admin`."""
        path = f"/v1/programs/{quote_segment(name)}/restart"
        return self._connection.post(path, ProgramRestart, {}, timeout=RESTART_TIMEOUT)

    def retention(self) -> tuple[RetentionRuleInfo, ...]:
        """What they keep, for how long and where. Needs the scope `admin`."""
        return (self._connection.get("/v1/retention", RetentionRules)).rules
