"""Budgets: their limits, the spending so far, and what running requests have reserved."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args

from freehold.errors import FreeholdError

ALL = "*"
"""The scope of a budget for all providers together."""

WARN_AT = 0.8
RESERVED_OUTPUT = 1024
"""Output tokens reserved before a response comes. More are counted as it streams."""

LimitName = Literal["day_cost", "month_cost", "day_tokens", "month_tokens"]
LIMIT_NAMES: tuple[LimitName, ...] = get_args(LimitName)


@dataclass(frozen=True)
class BudgetLimits:
    """None means no limit."""

    day_cost: float | None = None
    month_cost: float | None = None
    day_tokens: int | None = None
    month_tokens: int | None = None

    def named(self) -> list[tuple[LimitName, float]]:
        """The limits that are set, with their names."""
        return [(what, value) for what in LIMIT_NAMES if (value := getattr(self, what)) is not None]


@dataclass
class Spending:
    """Tokens and dollars of one scope in one period. `unpriced` counts requests of unknown price."""

    tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0

    def add(self, tokens: int, cost: float | None) -> None:
        self.tokens += tokens
        self.cost += cost or 0.0
        self.unpriced += cost is None

    def of(self, what: LimitName) -> float:
        return self.cost if what.endswith("cost") else float(self.tokens)


@dataclass(frozen=True)
class CrossedLimit:
    """A limit that is nearly or fully used."""

    scope: str
    limit_name: LimitName
    period: str
    limit: float
    spent: float
    reached: bool


@dataclass(eq=False)
class Reservation:
    """The reserved and the used amount of one running request."""

    provider: str
    held: Spending
    seen: Spending = field(default_factory=Spending)

    def counted(self, what: LimitName) -> float:
        return max(self.held.of(what), self.seen.of(what))


def period_of(what: LimitName, now: datetime) -> str:
    """The day or month that a limit counts. In UTC, like the timeline."""
    return now.strftime("%Y-%m-%d" if what.startswith("day") else "%Y-%m")


class Budgets:
    """The state of every budget in this process. The ledger stores what must survive a restart."""

    def __init__(self) -> None:
        self.limits: dict[str, BudgetLimits] = {}
        self.lifted: set[tuple[str, LimitName, str]] = set()
        self._spent: dict[tuple[str, str], Spending] = {}
        self._running: set[Reservation] = set()

    def load(self, scope: str, period: str, spent: Spending) -> None:
        self._spent[scope, period] = spent

    def spent(self, scope: str, period: str) -> Spending:
        return self._spent.get((scope, period)) or Spending()

    def reserve(self, provider: str, prompt: Spending, held: Spending, now: datetime) -> Reservation:
        """Reserves `held`. Raises `models.budget-reached` when too little is left for the prompt alone."""
        for scope in (provider, ALL):
            for what, limit in self._enforced(scope, now):
                used = self.spent(scope, period_of(what, now)).of(what) + sum(
                    running.counted(what) for running in self._running if scope in (running.provider, ALL)
                )
                if used >= limit or used + prompt.of(what) > limit:
                    raise BudgetReached(CrossedLimit(scope, what, period_of(what, now), limit, used, reached=True))
        reservation = Reservation(provider, held)
        self._running.add(reservation)
        return reservation

    def check(self, reservation: Reservation, now: datetime) -> None:
        """Raises `models.budget-reached` when the running requests have used up a budget."""
        for scope in (reservation.provider, ALL):
            for what, limit in self._enforced(scope, now):
                used = self.spent(scope, period_of(what, now)).of(what) + sum(
                    running.seen.of(what) for running in self._running if scope in (running.provider, ALL)
                )
                if used >= limit:
                    raise BudgetReached(CrossedLimit(scope, what, period_of(what, now), limit, used, reached=True))

    def settle(self, reservation: Reservation, tokens: int, cost: float | None, now: datetime) -> list[CrossedLimit]:
        """Counts the real cost of a request. Returns the limits that are now nearly or fully used. Idempotent."""
        if reservation not in self._running:
            return []
        self._running.discard(reservation)
        crossed = []
        for scope in (reservation.provider, ALL):
            for period in {period_of("day_cost", now), period_of("month_cost", now)}:
                self._spent.setdefault((scope, period), Spending()).add(tokens, cost)
            for what, limit in self._enforced(scope, now):
                period = period_of(what, now)
                used = self.spent(scope, period).of(what)
                if used >= WARN_AT * limit:
                    crossed.append(CrossedLimit(scope, what, period, limit, used, used >= limit))
        return crossed

    def _enforced(self, scope: str, now: datetime) -> list[tuple[LimitName, float]]:
        limits = self.limits.get(scope)
        if limits is None:
            return []
        return [
            (what, limit) for what, limit in limits.named() if (scope, what, period_of(what, now)) not in self.lifted
        ]


class BudgetReached(FreeholdError):
    """A budget is used up, or too little is left for a request."""

    def __init__(self, crossed: CrossedLimit) -> None:
        day = crossed.limit_name.startswith("day")
        money = crossed.limit_name.endswith("cost")
        amount = f"{crossed.limit:g} US dollars" if money else f"{crossed.limit:,.0f} tokens"
        whose = "all models" if crossed.scope == ALL else crossed.scope
        super().__init__(
            "models.budget-reached",
            f"The owner's budget is reached: {amount} for {whose} {'today' if day else 'this month'}",
            hint=f"The owner can ignore it for the rest of the {'day' if day else 'month'} with: freehold usage lift, "
            f"or raise {crossed.limit_name}",
        )
        self.crossed = crossed
