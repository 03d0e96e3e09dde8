"""What may be spent, what was, and what is being spent right now."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args

from freehold.errors import FreeholdError

ALL = "*"
"""The scope of what all providers together may cost."""

WARN_AT = 0.8
OUTPUT_HELD = 1024
"""How many tokens of an answer are set aside before it comes; more is counted as it streams."""

What = Literal["day_cost", "month_cost", "day_tokens", "month_tokens"]
WHATS: tuple[What, ...] = get_args(What)


@dataclass(frozen=True)
class Limits:
    """Nothing said means no bound."""

    day_cost: float | None = None
    month_cost: float | None = None
    day_tokens: int | None = None
    month_tokens: int | None = None

    def named(self) -> list[tuple[What, float]]:
        """Those that bound something."""
        return [(what, value) for what in WHATS if (value := getattr(self, what)) is not None]


@dataclass
class Spent:
    """Tokens and dollars of one scope in one period. `unpriced` counts requests whose price nobody knows."""

    tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0

    def add(self, tokens: int, cost: float | None) -> None:
        self.tokens += tokens
        self.cost += cost or 0.0
        self.unpriced += cost is None

    def of(self, what: What) -> float:
        return self.cost if what.endswith("cost") else float(self.tokens)


@dataclass(frozen=True)
class Crossed:
    """A limit that was neared or reached."""

    scope: str
    what: What
    period: str
    limit: float
    spent: float
    reached: bool


@dataclass(eq=False)
class Reservation:
    """One request's share: what was set aside for it, and what it is known to have used so far."""

    provider: str
    held: Spent
    seen: Spent = field(default_factory=Spent)

    def counted(self, what: What) -> float:
        return max(self.held.of(what), self.seen.of(what))


def period_of(what: What, now: datetime) -> str:
    """Days and months of UTC, like the timeline's."""
    return now.strftime("%Y-%m-%d" if what.startswith("day") else "%Y-%m")


class Budgets:
    """The state of every budget in this process; the ledger keeps what must outlive it."""

    def __init__(self) -> None:
        self.limits: dict[str, Limits] = {}
        self.lifted: set[tuple[str, What, str]] = set()
        self._spent: dict[tuple[str, str], Spent] = {}
        self._live: set[Reservation] = set()

    def load(self, scope: str, period: str, spent: Spent) -> None:
        self._spent[scope, period] = spent

    def spent(self, scope: str, period: str) -> Spent:
        return self._spent.get((scope, period)) or Spent()

    def reserve(self, provider: str, question: Spent, held: Spent, now: datetime) -> Reservation:
        """Sets `held` aside. Raises `models.budget-reached` when too little is left for the question alone."""
        for scope in (provider, ALL):
            for what, limit in self._enforced(scope, now):
                used = self.spent(scope, period_of(what, now)).of(what) + sum(
                    live.counted(what) for live in self._live if scope in (live.provider, ALL)
                )
                if used >= limit or used + question.of(what) > limit:
                    raise BudgetReached(Crossed(scope, what, period_of(what, now), limit, used, reached=True))
        reservation = Reservation(provider, held)
        self._live.add(reservation)
        return reservation

    def check(self, reservation: Reservation, now: datetime) -> None:
        """Raises `models.budget-reached` when what was seen by now, of all that runs, has used a budget up."""
        for scope in (reservation.provider, ALL):
            for what, limit in self._enforced(scope, now):
                used = self.spent(scope, period_of(what, now)).of(what) + sum(
                    live.seen.of(what) for live in self._live if scope in (live.provider, ALL)
                )
                if used >= limit:
                    raise BudgetReached(Crossed(scope, what, period_of(what, now), limit, used, reached=True))

    def settle(self, reservation: Reservation, tokens: int, cost: float | None, now: datetime) -> list[Crossed]:
        """Counts what a request really cost; the limits that this neared or reached. Idempotent."""
        if reservation not in self._live:
            return []
        self._live.discard(reservation)
        crossed = []
        for scope in (reservation.provider, ALL):
            for period in {period_of("day_cost", now), period_of("month_cost", now)}:
                self._spent.setdefault((scope, period), Spent()).add(tokens, cost)
            for what, limit in self._enforced(scope, now):
                period = period_of(what, now)
                used = self.spent(scope, period).of(what)
                if used >= WARN_AT * limit:
                    crossed.append(Crossed(scope, what, period, limit, used, used >= limit))
        return crossed

    def _enforced(self, scope: str, now: datetime) -> list[tuple[What, float]]:
        limits = self.limits.get(scope)
        if limits is None:
            return []
        return [
            (what, limit) for what, limit in limits.named() if (scope, what, period_of(what, now)) not in self.lifted
        ]


class BudgetReached(FreeholdError):
    """Nothing more of a budget is left, or too little for a question."""

    def __init__(self, crossed: Crossed) -> None:
        day = crossed.what.startswith("day")
        money = crossed.what.endswith("cost")
        amount = f"{crossed.limit:g} US dollars" if money else f"{crossed.limit:,.0f} tokens"
        whose = "all models" if crossed.scope == ALL else crossed.scope
        super().__init__(
            "models.budget-reached",
            f"The owner's budget is reached: {amount} for {whose} {'today' if day else 'this month'}",
            hint=f"The owner can lift it for the rest of the {'day' if day else 'month'} with: freehold usage lift, "
            f"or raise {crossed.what}",
        )
        self.crossed = crossed
