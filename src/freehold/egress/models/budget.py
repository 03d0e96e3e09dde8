"""Budgets: their limits, the spending so far, and what running requests have reserved."""

import asyncio
import math
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args

from freehold.errors import FreeholdError

ALL = "*"
"""The scope of a budget for all providers together."""

WARN_AT = 0.8
FREE_TIMEOUT = 60.0
"""Seconds that a request waits for what others have reserved."""

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
    """Tokens and dollars of one scope in one period.

    `unpriced` counts requests of unknown price, `assumed` those that count as the dearest of their provider.
    """

    tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    assumed: int = 0

    def add(self, other: "Spending") -> None:
        self.tokens += other.tokens
        self.cost += other.cost
        self.unpriced += other.unpriced
        self.assumed += other.assumed

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
    waits: bool = False
    """Whether it is only reserved, by requests that still run."""


@dataclass(frozen=True)
class Room:
    """What one request may use before a limit is reached."""

    tokens: float
    dollars: float


@dataclass(eq=False)
class Reservation:
    """The reserved and the used amount of one running request."""

    provider: str
    held: Spending
    seen: Spending = field(default_factory=Spending)

    def counted(self, what: LimitName) -> float:
        """What it can still become: its most, until it has ended."""
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
        self._freed = asyncio.Event()

    def load(self, scope: str, period: str, spent: Spending) -> None:
        self._spent[scope, period] = spent

    def spent(self, scope: str, period: str) -> Spending:
        return self._spent.get((scope, period)) or Spending()

    async def reserve(
        self, provider: str, least: Spending, held: Spending, now: datetime, *, short: Spending | None = None
    ) -> Reservation:
        """Reserves `held`, the most that a request can cost.

        `short` is for a request whose output can be limited: what it costs with a short response. Then it is enough
        that `least` fits, and `measure_room` says how much there is for it. Another request must fit at its most. When
        only the reservations of others are in the way, it waits for them to end.

        Raises `models.over-budget` when too little is left for the most of a request, and `models.budget-reached` when
        too little is left for `least`, or nothing became free in time.
        """
        needed = held if short is None else short
        try:
            async with asyncio.timeout(FREE_TIMEOUT):
                while (crossed := self._crossed(provider, needed, now)) is not None:
                    freed = self._freed
                    if not crossed.waits:
                        reached = self._crossed(provider, least, now)
                        if reached is not None and not reached.waits:
                            raise BudgetReached(reached)
                        if short is None:
                            raise over_budget(crossed, needed.of(crossed.limit_name))
                        if reached is None:
                            break
                    await freed.wait()
        except TimeoutError as error:
            assert crossed is not None
            if short is None or self._crossed(provider, least, now) is not None:
                raise BudgetReached(crossed) from error
        reservation = Reservation(provider, held)
        self._running.add(reservation)
        return reservation

    def measure_room(self, reservation: Reservation, now: datetime) -> Room:
        """What is left for this request beside what is spent and what all others have reserved."""
        others = self._running - {reservation}
        room = {"tokens": math.inf, "cost": math.inf}
        for scope in (reservation.provider, ALL):
            for what, limit in self._enforced(scope, now):
                held = sum(running.counted(what) for running in others if scope in (running.provider, ALL))
                unit = what.rpartition("_")[2]
                room[unit] = min(room[unit], limit - self.spent(scope, period_of(what, now)).of(what) - held)
        return Room(room["tokens"], room["cost"])

    def release(self, reservation: Reservation) -> None:
        """For a request that is not sent. Idempotent."""
        self._running.discard(reservation)
        self._freed.set()
        self._freed = asyncio.Event()

    def _crossed(self, provider: str, needed: Spending, now: datetime) -> CrossedLimit | None:
        """The limit that leaves no room for a request, or None. One that is used up comes before one that is held."""
        found = None
        for scope in (provider, ALL):
            for what, limit in self._enforced(scope, now):
                spent = self.spent(scope, period_of(what, now)).of(what)
                held = spent + sum(
                    running.counted(what) for running in self._running if scope in (running.provider, ALL)
                )
                if held >= limit or held + needed.of(what) > limit:
                    is_spent = spent >= limit or spent + needed.of(what) > limit
                    crossed = CrossedLimit(scope, what, period_of(what, now), limit, spent, True, waits=not is_spent)
                    if is_spent:
                        return crossed
                    found = crossed
        return found

    def check(self, reservation: Reservation, now: datetime) -> None:
        """Raises `models.budget-reached` when the running requests have used up a budget."""
        for scope in (reservation.provider, ALL):
            for what, limit in self._enforced(scope, now):
                used = self.spent(scope, period_of(what, now)).of(what) + sum(
                    running.seen.of(what) for running in self._running if scope in (running.provider, ALL)
                )
                if used >= limit:
                    raise BudgetReached(CrossedLimit(scope, what, period_of(what, now), limit, used, reached=True))

    def settle(self, reservation: Reservation, used: Spending, now: datetime) -> list[CrossedLimit]:
        """Counts what a request has used. Returns the limits that are now nearly or fully used. Idempotent."""
        if reservation not in self._running:
            return []
        self.release(reservation)
        crossed = []
        for scope in (reservation.provider, ALL):
            for period in {period_of("day_cost", now), period_of("month_cost", now)}:
                self._spent.setdefault((scope, period), Spending()).add(used)
            for what, limit in self._enforced(scope, now):
                period = period_of(what, now)
                spent = self.spent(scope, period).of(what)
                if spent >= WARN_AT * limit:
                    crossed.append(CrossedLimit(scope, what, period, limit, spent, spent >= limit))
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
        period = "day" if crossed.limit_name.startswith("day") else "month"
        state = "is reserved by requests that still run" if crossed.waits else "is reached"
        super().__init__(
            "models.budget-reached",
            f"The owner's budget {state}: {_amount(crossed, crossed.limit)} {_whose(crossed)}",
            hint=f"The owner can ignore it for the rest of the {period} with: freehold usage lift, "
            f"or raise {crossed.limit_name}",
        )
        self.crossed = crossed


def over_budget(crossed: CrossedLimit, needed: float) -> FreeholdError:
    """For a response that is not streamed: it would be complete, and paid, before anyone could cut it."""
    left = _amount(crossed, max(0.0, crossed.limit - crossed.spent))
    return FreeholdError(
        "models.over-budget",
        f"This request can use up to {_amount(crossed, needed)}, and of the owner's budget {left} are left "
        f"{_whose(crossed)}",
        hint="Stream the response, because a stream ends when the budget is reached; or allow fewer tokens of "
        f"output, such as with max_tokens. The owner can raise {crossed.limit_name}",
    )


def _amount(crossed: CrossedLimit, value: float) -> str:
    return f"{value:.4g} US dollars" if crossed.limit_name.endswith("cost") else f"{value:,.0f} tokens"


def _whose(crossed: CrossedLimit) -> str:
    whose = "all models" if crossed.scope == ALL else crossed.scope
    return f"for {whose} {'today' if crossed.limit_name.startswith('day') else 'this month'}"
