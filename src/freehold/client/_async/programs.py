"""The programs that the keeper runs: `home.programs`."""

from freehold.client._async.connection import AsyncConnection
from freehold.client.program_models import ProgramListing, ProgramRestart, RetentionRuleInfo, RetentionRules
from freehold.client.topic_protocol import quote_segment

RESTART_TIMEOUT = 120.0


class AsyncPrograms:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def state(self) -> ProgramListing:
        """All programs with restarts and memory, the ports, and the use of the computer."""
        return await self._connection.get("/v1/programs", ProgramListing)

    async def restart(self, name: str) -> ProgramRestart:
        """Restart a program. Needs the scope `admin`."""
        path = f"/v1/programs/{quote_segment(name)}/restart"
        return await self._connection.post(path, ProgramRestart, {}, timeout=RESTART_TIMEOUT)

    async def retention(self) -> tuple[RetentionRuleInfo, ...]:
        """What they keep, for how long and where. Needs the scope `admin`."""
        return (await self._connection.get("/v1/retention", RetentionRules)).rules
