"""Checks before a model request whether the budget allows it, and records afterwards what it cost."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime

from freehold.egress.models.budget import RESERVED_OUTPUT, BudgetReached, Budgets, CrossedLimit, Reservation, Spending
from freehold.egress.models.ledger import ActiveStop, Ledger, UsageRecord, now_text
from freehold.egress.models.meter import Meter
from freehold.egress.models.metrics import ModelMetrics
from freehold.egress.models.model_request import ModelRequest
from freehold.egress.models.paths import Route
from freehold.egress.models.placeholders import PlaceholderGrant
from freehold.egress.models.prices import Prices, Rates
from freehold.egress.models.usage import TokenCounts
from freehold.errors import FreeholdError
from freehold.timeline import Json

log = logging.getLogger(__name__)

RECORD_AFTER = 0.25
"""Seconds after which a request that still runs is recorded."""
REFUSAL_INTERVAL = 60.0
"""Seconds between two recorded refusals of one kind: an agent may try a thousand times a second."""

UNREACHABLE = "models.unreachable"
BLOCKING = frozenset({"models.budget-reached", "models.no-key", UNREACHABLE})


class Bill:
    """The cost of one model request. Open until the response has ended."""

    def __init__(
        self,
        billing: "Billing",
        route: Route,
        grant: PlaceholderGrant,
        request: ModelRequest,
        reservation: Reservation,
        prices: Prices,
    ) -> None:
        self.meter: Meter | None = None
        self.outcome = "failed"
        self._billing = billing
        self._provider = route.provider.name
        self._session, self._turn = grant.session, grant.turn
        self._request = request
        self._reservation = reservation
        self._prices = prices
        self._began = time.monotonic()
        self.closed = asyncio.Event()
        billing.open_bills.setdefault(grant.session, set()).add(self)
        self._at = now_text()
        self._timer: asyncio.TimerHandle | None = None
        self._opening: asyncio.Task[int] | None = None

    def begin(self) -> None:
        """The request was sent. It is recorded a little later, so that a quick response does not wait for the disk."""
        self._timer = asyncio.get_running_loop().call_later(RECORD_AFTER, self._open)

    def _open(self) -> None:
        held = TokenCounts(self._request.estimate, min(self._request.max_output, RESERVED_OUTPUT))
        record = self._record(held, "open", True)
        self._opening = asyncio.get_running_loop().create_task(asyncio.to_thread(self._billing.ledger.open, record))

    def answer(self) -> None:
        """The provider responded, so it is no longer unreachable."""
        blocked = self._billing.blocked.get(self._session)
        if blocked is not None and blocked.code == UNREACHABLE:
            del self._billing.blocked[self._session]

    def check(self) -> None:
        """Raises `models.budget-reached`."""
        assert self.meter is not None
        seen = self.meter.seen
        self._reservation.seen = Spending(seen.total, self._cost(seen) or 0.0)
        try:
            self._billing.budgets.check(self._reservation, datetime.now(UTC))
        except BudgetReached as error:
            self._billing.blocked[self._session] = error
            raise

    def close(self) -> None:
        """Counts the cost at once, and records it in the background."""
        tokens, estimated = self._tokens()
        record = self._record(tokens, self.outcome, estimated)
        crossed = self._billing.budgets.settle(self._reservation, tokens.total, record.cost, datetime.now(UTC))
        if self._timer is not None:
            self._timer.cancel()
        seconds = time.monotonic() - self._began
        self._billing.metrics.answered(record, seconds, priced=self._rates() is not None)
        milliseconds = int(seconds * 1000)
        self._billing.run_to_end(self._write(record, milliseconds, crossed))

    async def _write(self, record: UsageRecord, milliseconds: int, crossed: list[CrossedLimit]) -> None:
        """If the process dies before this, the open record counts with the reserved tokens."""
        try:
            number = await self._opening if self._opening is not None else None
            await asyncio.to_thread(self._billing.ledger.close, number, record, milliseconds, crossed)
        except FreeholdError as error:
            log.warning("the cost of a model request cannot be recorded: %s", error)
        finally:
            self.closed.set()
            bills = self._billing.open_bills[self._session]
            bills.discard(self)
            if not bills:
                del self._billing.open_bills[self._session]

    def _tokens(self) -> tuple[TokenCounts, bool]:
        if self.meter is not None:
            return self.meter.seen, not self.meter.final
        if self.outcome in ("cancelled", "stopped"):
            return TokenCounts(self._request.estimate), True  # it was sent, and the provider charges for it
        return TokenCounts(), False

    def _record(self, tokens: TokenCounts, outcome: str, estimated: bool) -> UsageRecord:
        return UsageRecord(
            self._provider,
            self._model,
            self._session,
            self._turn,
            tokens,
            self._cost(tokens),
            estimated,
            outcome,
            self._at,
        )

    @property
    def _model(self) -> str:
        return (self.meter.model if self.meter is not None else None) or self._request.model

    def _cost(self, tokens: TokenCounts) -> float | None:
        if not tokens.total:
            return 0.0
        rates = self._rates()
        return rates.cost(tokens) if rates is not None else None

    def _rates(self) -> Rates | None:
        return self._prices.find(self._model) or self._prices.find(self._request.model)


class NoBill:
    """For requests that use no model and cost nothing."""

    meter: Meter | None = None
    outcome = ""

    def begin(self) -> None:
        return

    def answer(self) -> None:
        return

    def check(self) -> None:
        return

    def close(self) -> None:
        return


@dataclass(eq=False)
class Billing:
    """Bills of all requests, the budgets they count against, and the kill switch."""

    ledger: Ledger
    budgets: Budgets
    prices: Callable[[str], Prices]
    run_to_end: Callable[[Coroutine[None, None, None]], object]
    """Runs a coroutine that must finish even after its connection has ended."""
    stopped: ActiveStop | None = None
    metrics: ModelMetrics = field(default_factory=ModelMetrics)

    def __post_init__(self) -> None:
        self.open_bills: dict[str, set[Bill]] = {}
        self._known: dict[str, Prices] = {}
        self._refused: dict[tuple[str, str], float] = {}
        self.blocked: dict[str, FreeholdError] = {}
        """By session, the last problem that only the owner can solve."""
        self._day = ""

    def check_not_stopped(self) -> None:
        """Raises `models.stopped`."""
        if self.stopped is not None:
            raise stopped_error()

    async def open(self, route: Route, grant: PlaceholderGrant, request: ModelRequest) -> Bill | NoBill:
        """Raises `models.budget-reached`."""
        if route.api is None:
            return NoBill()
        provider = route.provider
        prices = self._known.get(provider.name)
        if prices is None:
            prices = self._known[provider.name] = await asyncio.to_thread(self.prices, provider.url)
        now = datetime.now(UTC)
        await self._begin_day(now)
        prompt = TokenCounts(request.estimate)
        held = TokenCounts(request.estimate, min(request.max_output, RESERVED_OUTPUT))
        rates = prices.find(request.model)
        reservation = self.budgets.reserve(
            provider.name,
            Spending(prompt.total, (rates.cost(prompt) if rates else None) or 0.0),
            Spending(held.total, (rates.cost(held) if rates else None) or 0.0),
            now,
        )
        return Bill(self, route, grant, request, reservation, prices)

    async def wait_closed(self, session: str) -> None:
        """Waits until every request that the session has made so far is recorded."""
        for bill in tuple(self.open_bills.get(session, ())):
            await bill.closed.wait()

    async def record_refusal(self, provider: str, session: str | None, error: FreeholdError) -> None:
        """Makes one event for many refusals of a kind; for a budget, one a day or month."""
        self.metrics.refused(provider, error)
        if session is not None and error.code in BLOCKING:
            self.blocked[session] = error
        key, now = (provider, error.code), time.monotonic()
        if now - self._refused.get(key, -REFUSAL_INTERVAL) < REFUSAL_INTERVAL:
            return
        self._refused[key] = now
        data: dict[str, Json] = {"provider": provider, "session": session, "code": error.code, "reason": error.message}
        try:
            if isinstance(error, BudgetReached):
                await asyncio.to_thread(self.ledger.record_reached, error.crossed)
            await asyncio.to_thread(self.ledger.timeline.append, "models.request_refused", data, who="computer")
        except FreeholdError as problem:
            log.warning("a refusal cannot be recorded: %s", problem)

    async def _begin_day(self, now: datetime) -> None:
        """Reads the spending from the ledger when a new day has begun."""
        day = now.strftime("%Y-%m-%d")
        if day != self._day:
            spent = await asyncio.to_thread(self.ledger.spent, now)
            self._day = day
            for (scope, period), total in spent.items():
                self.budgets.load(scope, period, total)

    async def begin(self) -> None:
        await self._begin_day(datetime.now(UTC))


def stopped_error() -> FreeholdError:
    return FreeholdError(
        "models.stopped",
        "The owner has stopped all agents and models",
        hint="The owner resumes them with: freehold stop --lift",
    )
