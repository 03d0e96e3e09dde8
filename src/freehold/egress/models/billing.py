"""Before a question is sent, whether it may be; after its answer, what it cost."""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime

from freehold.egress.models.budget import OUTPUT_HELD, BudgetReached, Budgets, Crossed, Reservation, Spent
from freehold.egress.models.ledger import Ledger, Spell, Stopped, now_text
from freehold.egress.models.measures import Measures
from freehold.egress.models.meter import Meter
from freehold.egress.models.paths import Route
from freehold.egress.models.placeholders import Grant
from freehold.egress.models.prices import Prices, Rates
from freehold.egress.models.question import Question
from freehold.egress.models.usage import Tokens
from freehold.errors import FreeholdError
from freehold.timeline import Json

log = logging.getLogger(__name__)

NOTED_AFTER = 0.25
"""When a question that is still under way is written down, in seconds."""
REFUSAL_STEP = 60.0
"""Refusals of one kind are written down at most this often, in seconds: an agent may try a thousand times a second."""

AWAY = "models.unreachable"
BLOCKING = frozenset({"models.budget-reached", "models.no-key", AWAY})


class Bill:
    """The account of one question, open until its answer is over."""

    def __init__(
        self,
        account: "Account",
        route: Route,
        grant: Grant,
        question: Question,
        reservation: Reservation,
        prices: Prices,
    ) -> None:
        self.meter: Meter | None = None
        self.outcome = "failed"
        self._account = account
        self._provider = route.provider.name
        self._session, self._turn = grant.session, grant.turn
        self._question = question
        self._reservation = reservation
        self._prices = prices
        self._began = time.monotonic()
        self.closed = asyncio.Event()
        account.open_bills.setdefault(grant.session, set()).add(self)
        self._at = now_text()
        self._timer: asyncio.TimerHandle | None = None
        self._opening: asyncio.Task[int] | None = None

    def begin(self) -> None:
        """The question is on its way. Noted a little later: the disk must not make a quick answer wait."""
        self._timer = asyncio.get_running_loop().call_later(NOTED_AFTER, self._open)

    def _open(self) -> None:
        held = Tokens(self._question.estimate, min(self._question.most_output, OUTPUT_HELD))
        spell = self._spell(held, "open", True)
        self._opening = asyncio.get_running_loop().create_task(asyncio.to_thread(self._account.ledger.open, spell))

    def answer(self) -> None:
        """The provider is there, whatever was before."""
        blocked = self._account.blocked.get(self._session)
        if blocked is not None and blocked.code == AWAY:
            del self._account.blocked[self._session]

    def check(self) -> None:
        """Raises `models.budget-reached`."""
        assert self.meter is not None
        seen = self.meter.seen
        self._reservation.seen = Spent(seen.total, self._cost(seen) or 0.0)
        try:
            self._account.budgets.check(self._reservation, datetime.now(UTC))
        except BudgetReached as error:
            self._account.blocked[self._session] = error
            raise

    def close(self) -> None:
        """Counts what it cost at once, and writes it down beside whatever comes next."""
        tokens, estimated = self._tokens()
        spell = self._spell(tokens, self.outcome, estimated)
        crossed = self._account.budgets.settle(self._reservation, tokens.total, spell.cost, datetime.now(UTC))
        if self._timer is not None:
            self._timer.cancel()
        seconds = time.monotonic() - self._began
        self._account.measures.answered(spell, seconds, priced=self._rates() is not None)
        milliseconds = int(seconds * 1000)
        self._account.keep(self._write(spell, milliseconds, crossed))

    async def _write(self, spell: Spell, milliseconds: int, crossed: list[Crossed]) -> None:
        """A process that dies before this leaves the line open, and counted with what was set aside."""
        try:
            number = await self._opening if self._opening is not None else None
            await asyncio.to_thread(self._account.ledger.close, number, spell, milliseconds, crossed)
        except FreeholdError as error:
            log.warning("what a question cost cannot be written down: %s", error)
        finally:
            self.closed.set()
            bills = self._account.open_bills[self._session]
            bills.discard(self)
            if not bills:
                del self._account.open_bills[self._session]

    def _tokens(self) -> tuple[Tokens, bool]:
        if self.meter is not None:
            return self.meter.seen, not self.meter.final
        if self.outcome in ("cancelled", "stopped"):
            return Tokens(self._question.estimate), True  # it was sent, and will be charged by whoever was asked
        return Tokens(), False

    def _spell(self, tokens: Tokens, outcome: str, estimated: bool) -> Spell:
        return Spell(
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
        return (self.meter.model if self.meter is not None else None) or self._question.model

    def _cost(self, tokens: Tokens) -> float | None:
        if not tokens.total:
            return 0.0
        rates = self._rates()
        return rates.cost(tokens) if rates is not None else None

    def _rates(self) -> Rates | None:
        return self._prices.of(self._model) or self._prices.of(self._question.model)


class NoBill:
    """For what asks no model, and so costs nothing."""

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
class Account:
    ledger: Ledger
    budgets: Budgets
    prices: Callable[[str], Prices]
    keep: Callable[[Coroutine[None, None, None]], object]
    """Runs what must be finished even after the connection it belongs to has ended."""
    stopped: Stopped | None = None
    measures: Measures = field(default_factory=Measures)

    def __post_init__(self) -> None:
        self.open_bills: dict[str, set[Bill]] = {}
        self._known: dict[str, Prices] = {}
        self._refused: dict[tuple[str, str], float] = {}
        self.blocked: dict[str, FreeholdError] = {}
        """By session, what only the owner can change and stood in the way last."""
        self._day = ""

    def admit(self) -> None:
        """Raises `models.stopped`."""
        if self.stopped is not None:
            raise stopped()

    async def open(self, route: Route, grant: Grant, question: Question) -> Bill | NoBill:
        """Raises `models.budget-reached`."""
        if route.api is None:
            return NoBill()
        provider = route.provider
        prices = self._known.get(provider.name)
        if prices is None:
            prices = self._known[provider.name] = await asyncio.to_thread(self.prices, provider.url)
        now = datetime.now(UTC)
        await self._begin_day(now)
        asked = Tokens(question.estimate)
        held = Tokens(question.estimate, min(question.most_output, OUTPUT_HELD))
        rates = prices.of(question.model)
        reservation = self.budgets.reserve(
            provider.name,
            Spent(asked.total, (rates.cost(asked) if rates else None) or 0.0),
            Spent(held.total, (rates.cost(held) if rates else None) or 0.0),
            now,
        )
        return Bill(self, route, grant, question, reservation, prices)

    async def all_closed(self, session: str) -> None:
        """Until nothing that a session has asked by now is still unwritten."""
        for bill in tuple(self.open_bills.get(session, ())):
            await bill.closed.wait()

    async def note_refusal(self, provider: str, session: str | None, error: FreeholdError) -> None:
        """One event for many refusals of a kind; of a budget, one a day or month."""
        self.measures.refused(provider, error)
        if session is not None and error.code in BLOCKING:
            self.blocked[session] = error
        key, now = (provider, error.code), time.monotonic()
        if now - self._refused.get(key, -REFUSAL_STEP) < REFUSAL_STEP:
            return
        self._refused[key] = now
        data: dict[str, Json] = {"provider": provider, "session": session, "code": error.code, "reason": error.message}
        try:
            if isinstance(error, BudgetReached):
                await asyncio.to_thread(self.ledger.note_reached, error.crossed)
            await asyncio.to_thread(self.ledger.timeline.append, "models.request_refused", data, who="computer")
        except FreeholdError as problem:
            log.warning("a refusal cannot be written down: %s", problem)

    async def _begin_day(self, now: datetime) -> None:
        """What was spent is counted anew from the ledger where a day has begun."""
        day = now.strftime("%Y-%m-%d")
        if day != self._day:
            spent = await asyncio.to_thread(self.ledger.spent, now)
            self._day = day
            for (scope, period), total in spent.items():
                self.budgets.load(scope, period, total)

    async def begin(self) -> None:
        await self._begin_day(datetime.now(UTC))


def stopped() -> FreeholdError:
    return FreeholdError(
        "models.stopped",
        "The owner has stopped everything",
        hint="The owner lifts it with: freehold stop --lift",
    )
