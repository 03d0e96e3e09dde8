# made from _async/budgets.py by python -m tools.generate
"""The limits of what models may cost: `home.budgets`."""

from freehold.client._sync.connection import SyncConnection
from freehold.client.usage_models import BudgetInfo, BudgetLimit, BudgetListing


class SyncBudgets:
    """`scope` is a provider, or `*` for all. The token needs the scope `admin`."""

    def __init__(self, connection: SyncConnection) -> None:
        self._connection = connection

    def list(self) -> tuple[BudgetInfo, ...]:
        """Every limit in force with the spending so far."""
        return (self._connection.get("/v1/budgets", BudgetListing)).budgets

    def set(
        self,
        scope: str = "*",
        *,
        day_cost: float | None = None,
        month_cost: float | None = None,
        day_tokens: int | None = None,
        month_tokens: int | None = None,
    ) -> tuple[BudgetInfo, ...]:
        """Set the limits of a provider or of all, in US dollars and tokens. Without any, those of the manifest apply again."""
        body = {"scope": scope, "day_cost": day_cost, "month_cost": month_cost}
        body |= {"day_tokens": day_tokens, "month_tokens": month_tokens}
        return (self._connection.put("/v1/budgets", BudgetListing, body)).budgets

    def lift(self, scope: str, limit: BudgetLimit) -> tuple[BudgetInfo, ...]:
        """Ignore a limit until its day or month is over."""
        body = {"scope": scope, "limit": limit}
        return (self._connection.post("/v1/budgets/lift", BudgetListing, body)).budgets
