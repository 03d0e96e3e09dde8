"""What models were used and cost: `home.usage`."""

from freehold.client._async.connection import AsyncConnection
from freehold.client.usage_models import UsageGrouping, UsageTable


class AsyncUsage:
    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    async def report(self, by: UsageGrouping = "day", *, since: str = "", limit: int = 100) -> UsageTable:
        """Usage and cost of models, the newest first. `since` is a day: `2026-11-19`."""
        return await self._connection.get("/v1/usage", UsageTable, {"by": by, "since": since, "limit": limit})
