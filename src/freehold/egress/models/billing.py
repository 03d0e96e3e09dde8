"""Checks before a model request whether the budget allows it, and records afterwards what it cost."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import product

from freehold.egress.models.budget import BudgetReached, Budgets, CrossedLimit, Reservation, Room, Spending
from freehold.egress.models.ledger import ActiveStop, Ledger, UsageRecord, now_text
from freehold.egress.models.meter import Meter
from freehold.egress.models.metrics import ModelMetrics
from freehold.egress.models.model_request import ModelRequest, limit_output
from freehold.egress.models.open_requests import OpenRequests
from freehold.egress.models.paths import Route
from freehold.egress.models.placeholders import PlaceholderGrant
from freehold.egress.models.prices import MILLION, Cost, Prices, Rates
from freehold.egress.models.usage import ModelUsage, TokenCounts
from freehold.errors import FreeholdError
from freehold.timeline import Json

log = logging.getLogger(__name__)

MAX_OUTPUT = 128_000
"""Output tokens of one response when neither the request nor the price table says how many there can be."""
MAX_NAMED_OUTPUT = 1_000_000
"""More than this is not reserved, whatever the request says."""
SHORT_OUTPUT = 1_024
"""Output tokens for which a streamed response waits, when other requests have reserved the budget."""
REFUSAL_INTERVAL = 60.0
"""Seconds between two recorded refusals of one kind: an agent may try a thousand times a second."""

UNREACHABLE = "models.unreachable"
BLOCKING = frozenset({"models.budget-reached", "models.no-key", "models.signed-out", UNREACHABLE})


@dataclass(frozen=True)
class Most:
    """The most that a request can cost: all the output that it allows, at the dearest price that may apply."""

    tokens: TokenCounts
    cost: Cost | None
    rates: Rates | None
    """Those of the model and tier that make it the most."""

    @property
    def spending(self) -> Spending:
        return Spending(self.tokens.total, self.cost.dollars if self.cost is not None else 0.0)


class Bill:
    """The cost of one model request. Open until the response has ended.

    A request that was sent counts at its most until the provider has reported what it used.
    """

    def __init__(
        self,
        billing: "Billing",
        route: Route,
        grant: PlaceholderGrant,
        request: ModelRequest,
        reservation: Reservation,
        prices: Prices,
        most: Most,
        ceiling: int,
    ) -> None:
        self.meter: Meter | None = None
        self.outcome = "failed"
        self._billing = billing
        self._provider = route.provider.name
        self._session, self._turn = grant.session, grant.turn
        self.request = request
        """What is sent: its output may be limited to what the budget leaves."""
        self._reservation = reservation
        self._prices = prices
        self._most = most
        self._ceiling = ceiling
        self._told: tuple[str | None, str | None] = (None, None)
        self._told_rates = most.rates
        self._began = time.monotonic()
        self.closed = asyncio.Event()
        billing.open_bills.setdefault(grant.session, set()).add(self)
        self._at = now_text("microseconds")
        self._number: int | None = None

    async def begin(self) -> None:
        """Records the request at its most, before it is sent: it counts even if this process is killed.

        Raises `models.not-recorded`.
        """
        record = self._record(self._most.tokens, self._most.cost, "open", estimated=True)
        try:
            self._number = self._billing.open_requests.begin(record)
        except OSError as error:
            raise FreeholdError(
                "models.not-recorded",
                f"The request was not sent, because its cost cannot be recorded: {error.strerror or error}",
                hint="The owner finds the reason with: freehold status",
            ) from error

    def answer(self) -> None:
        """The provider responded, so it is no longer unreachable."""
        blocked = self._billing.blocked.get(self._session)
        if blocked is not None and blocked.code == UNREACHABLE:
            del self._billing.blocked[self._session]

    def check(self) -> None:
        """Raises `models.budget-reached`."""
        seen = self._seen()
        cost = self._cost(seen)
        self._reservation.seen = Spending(seen.total, cost.dollars if cost is not None else 0.0)
        try:
            self._billing.budgets.check(self._reservation, datetime.now(UTC))
        except BudgetReached as error:
            self._billing.blocked[self._session] = error
            raise

    def usage(self) -> ModelUsage:
        """What was seen so far."""
        seen = self._seen() if self._number is not None else TokenCounts()
        cost = self._cost(seen)
        dollars = cost.dollars if cost is not None else None
        assumed = cost is not None and cost.assumed
        return ModelUsage(1, seen, dollars, dollars or 0.0, int(assumed), int(self._number is not None))

    def belongs_to(self, turn: str | None) -> bool:
        return turn is None or turn == self._turn

    def close(self) -> None:
        """Counts the cost at once, and records it in the background."""
        tokens, cost, estimated = self._settle()
        record = self._record(tokens, cost, self.outcome, estimated=estimated)
        used = Spending(tokens.total, record.cost or 0.0, int(record.cost is None), int(record.assumed))
        crossed = self._billing.budgets.settle(self._reservation, used, datetime.now(UTC))
        seconds = time.monotonic() - self._began
        self._billing.metrics.answered(record, seconds, priced=self._prices.lists(self._model))
        if record.assumed:
            self._billing.report_missing_price(self._provider, self._model, self._tier)
        milliseconds = int(seconds * 1000)
        self._billing.run_to_end(self._write(record, milliseconds, crossed))

    async def _write(self, record: UsageRecord, milliseconds: int, crossed: list[CrossedLimit]) -> None:
        """If the process dies before this, what `begin` wrote counts."""
        try:
            await asyncio.to_thread(self._billing.ledger.close, record, milliseconds, crossed)
            if self._number is not None:
                self._billing.open_requests.end(self._number)
        except (FreeholdError, OSError) as error:
            log.warning("the cost of a model request cannot be recorded: %s", error)
        finally:
            self.closed.set()
            bills = self._billing.open_bills[self._session]
            bills.discard(self)
            if not bills:
                del self._billing.open_bills[self._session]

    def _settle(self) -> tuple[TokenCounts, Cost | None, bool]:
        """Tokens, cost, and whether they are estimated."""
        if self._number is None or self.outcome.startswith("status-"):
            return TokenCounts(), Cost(0.0), False
        if self.meter is not None and self.meter.final:
            return self.meter.seen, self._cost(self.meter.seen), False
        seen = self._seen()
        if self.meter is not None and self.outcome == "budget-reached":
            return seen, self._cost(seen), True
        most = TokenCounts(max(seen.input, self._most.tokens.input), max(seen.output, self._most.tokens.output))
        costs = [cost_most(self.request, rates, most) for rates in (self._rates(), self._most.rates) if rates]
        return most, max(costs, key=lambda cost: cost.dollars, default=None), True

    def _seen(self) -> TokenCounts:
        """What was reported or has passed so far. An estimate is never above what the agent's request allows."""
        if self.meter is None:
            return TokenCounts(self.request.estimate)
        seen, reported = self.meter.seen, self.meter.tokens or TokenCounts()
        output = max(reported.output, min(seen.output, self._ceiling))
        return TokenCounts(seen.input, output, seen.cached, seen.written)

    def _record(self, tokens: TokenCounts, cost: Cost | None, outcome: str, *, estimated: bool) -> UsageRecord:
        return UsageRecord(
            self._provider,
            self._model,
            self._session,
            self._turn,
            tokens,
            cost.dollars if cost is not None else None,
            estimated,
            outcome,
            self._at,
            cost is not None and cost.assumed,
        )

    @property
    def _model(self) -> str:
        return (self.meter.model if self.meter is not None else None) or self.request.model

    @property
    def _tier(self) -> str | None:
        """The tier that the provider says it used; without its word what the request asks for."""
        told = self.meter.tier if self.meter is not None else None
        return told or next(iter(self.request.tiers), None)

    def _cost(self, tokens: TokenCounts) -> Cost | None:
        if not tokens.total:
            return Cost(0.0)
        rates = self._rates()
        if rates is None:
            return None
        cost = rates.cost(tokens, self.meter.kinds) if self.meter is not None else rates.cost(tokens)
        return Cost(cost.dollars * self.request.surcharge, cost.assumed)

    def _rates(self) -> Rates | None:
        """By the model and the tier that the provider names; without its word the dearest that the request allows.

        A model that is not listed may be another name of one that was asked.
        """
        told = (self.meter.model, self.meter.tier) if self.meter is not None else (None, None)
        if told != self._told:
            self._told = told
            self._told_rates = self._find_rates(*told)
        return self._told_rates

    def _find_rates(self, model: str | None, tier: str | None) -> Rates | None:
        request = self.request if tier is None else replace(self.request, tiers=(tier,))
        if model is not None and self._prices.lists(model):
            request = replace(request, model=model, alternatives=())
        return find_most(request, self._prices).rates


class NoBill:
    """For requests that use no model and cost nothing."""

    meter: Meter | None = None
    outcome = ""

    async def begin(self) -> None:
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
    open_requests: OpenRequests
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
        self._missing_prices: set[tuple[str, str, str | None]] = set()

    def report_missing_price(self, provider: str, model: str, tier: str | None) -> None:
        """Logs once that a price is missing."""
        key = (provider, model, tier)
        if key not in self._missing_prices and len(self._missing_prices) < 1_000:
            self._missing_prices.add(key)
            log.warning(
                "the price table has no price for %s of %s in the tier %s: it counts as the dearest of the provider",
                *(model, provider, tier or "default"),
            )

    def check_not_stopped(self) -> None:
        """Raises `models.stopped`."""
        if self.stopped is not None:
            raise stopped_error()

    async def open(self, route: Route, grant: PlaceholderGrant, request: ModelRequest) -> Bill | NoBill:
        """Raises `models.budget-reached`, or `models.over-budget` when too little is left for a response.

        A streamed response may have as many tokens as the budget leaves, and its request then says so: what a model
        thinks without sending it is seen only at the end, too late to cut it.
        """
        if route.api is None:
            return NoBill()
        provider = route.provider
        prices = self._known.get(provider.url)
        if prices is None:
            prices = self._known[provider.url] = await asyncio.to_thread(self.prices, provider.url)
        now = datetime.now(UTC)
        await self._begin_day(now)
        most = find_most(request, prices)
        ceiling = most.tokens.output
        if not request.streamed:
            prompt, rates = TokenCounts(request.estimate), prices.find(request.model)
            least = Spending(prompt.total, rates.cost(prompt).dollars if rates else 0.0)
            reservation = await self.budgets.reserve(provider.name, least, most.spending, now)
            return Bill(self, route, grant, request, reservation, prices, most, ceiling)
        least, short = (
            find_most(replace(request, max_output=min(each, ceiling), fills_window=False), prices).spending
            for each in (request.smallest_output, SHORT_OUTPUT)
        )
        reservation = await self.budgets.reserve(provider.name, least, most.spending, now, short=short)
        try:
            fits = find_output(request, prices, self.budgets.measure_room(reservation, now))
            if fits * request.responses < ceiling:
                request = await asyncio.to_thread(limit_output, request, route, fits)
                most = find_most(request, prices)
                reservation.held = most.spending
        except BaseException:
            self.budgets.release(reservation)
            raise
        return Bill(self, route, grant, request, reservation, prices, most, ceiling)

    def running_usage(self, session: str, turn: str | None) -> ModelUsage:
        """What was seen so far of the session's requests that still run."""
        found = ModelUsage(0, TokenCounts(), 0.0)
        for bill in self.open_bills.get(session, ()):
            if bill.belongs_to(turn):
                found += bill.usage()
        return found

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


def find_most(request: ModelRequest, prices: Prices) -> Most:
    """The most that a request can cost, over all models that may respond to it."""
    found: list[Most] = []
    for rates in _possible_rates(request, prices):
        window = rates.window if rates is not None and rates.window else MAX_NAMED_OUTPUT
        one = min(window, MAX_OUTPUT if request.max_output is None else request.max_output)
        given = max(window, request.estimate) if request.fills_window else request.estimate
        tokens = TokenCounts(given, one * request.responses)
        found.append(Most(tokens, cost_most(request, rates, tokens) if rates is not None else None, rates))
    return max(found, key=lambda most: (most.cost.dollars if most.cost is not None else 0.0, most.tokens.total))


def find_output(request: ModelRequest, prices: Prices, room: Room) -> int:
    """How many tokens each response may have, so that all of them fit at the dearest price."""
    fits = min(room.tokens - request.estimate, MAX_NAMED_OUTPUT * request.responses)
    for rates in _possible_rates(request, prices):
        if rates is not None:
            prompt, both = (
                cost_most(request, rates, TokenCounts(request.estimate, output)).dollars for output in (0, MILLION)
            )
            if both > prompt:
                fits = min(fits, MILLION * (room.dollars - prompt) / (both - prompt))
    return max(int(fits) // request.responses, request.smallest_output)


def _possible_rates(request: ModelRequest, prices: Prices) -> Iterator[Rates | None]:
    """Of every model and tier that may respond."""
    for model, tier in product((request.model, *request.alternatives), request.tiers or (None,)):
        yield prices.find(model, prices.dearest_tier(model, tier))


def cost_most(request: ModelRequest, rates: Rates, tokens: TokenCounts) -> Cost:
    """What so many tokens of a request cost if every one is of the dearest kind."""
    dearest = rates.most(tokens, long_cache=request.long_cache)
    return Cost(dearest.dollars * request.surcharge, dearest.assumed)


def stopped_error() -> FreeholdError:
    return FreeholdError(
        "models.stopped",
        "The owner has stopped all agents and models",
        hint="The owner resumes them with: freehold stop --lift",
    )
