"""The limits of all budgets with the spending so far."""

from dataclasses import dataclass
from datetime import UTC, datetime

from freehold.egress.models.budget import Budgets, LimitName, period_of


@dataclass(frozen=True)
class BudgetState:
    """A limit, and the spending of the current day or month."""

    scope: str
    limit_name: LimitName
    period: str
    limit: float
    spent: float
    unpriced: int
    assumed: int
    lifted: bool


def list_budget_states(budgets: Budgets, now: datetime | None = None) -> list[BudgetState]:
    now = now or datetime.now(UTC)
    found = []
    for scope, limits in sorted(budgets.limits.items()):
        for what, limit in limits.named():
            period = period_of(what, now)
            spent = budgets.spent(scope, period)
            lifted = (scope, what, period) in budgets.lifted
            found.append(BudgetState(scope, what, period, limit, spent.of(what), spent.unpriced, spent.assumed, lifted))
    return found
