"""Where each budget stands."""

from dataclasses import dataclass
from datetime import UTC, datetime

from freehold.egress.models.budget import Budgets, What, period_of


@dataclass(frozen=True)
class Standing:
    """A limit, and what was spent of it in the day or month that it is."""

    scope: str
    what: What
    period: str
    limit: float
    spent: float
    unpriced: int
    lifted: bool


def standings(budgets: Budgets, now: datetime | None = None) -> list[Standing]:
    now = now or datetime.now(UTC)
    found = []
    for scope, limits in sorted(budgets.limits.items()):
        for what, limit in limits.named():
            period = period_of(what, now)
            spent = budgets.spent(scope, period)
            lifted = (scope, what, period) in budgets.lifted
            found.append(Standing(scope, what, period, limit, spent.of(what), spent.unpriced, lifted))
    return found
