# made from _async/usage.py by python -m tools.generate
"""What models were used and cost: `home.usage`."""

from freehold.client._sync.connection import SyncConnection
from freehold.client.usage_models import UsageGrouping, UsageTable


class SyncUsage:
    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def report(self, by: UsageGrouping = "day", *, since: str = "", limit: int = 100) -> UsageTable:
        """Usage and cost of models, the newest first. `since` is a day: `2026-11-19`."""
        return self._connection.get("/v1/usage", UsageTable, {"by": by, "since": since, "limit": limit})
