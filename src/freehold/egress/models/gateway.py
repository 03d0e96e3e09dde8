"""The model gateway of one Freehold, running: streams from inside in, requests to providers out."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from types import TracebackType
from typing import Self

from freehold.egress.models.account import Account
from freehold.egress.models.account import stopped as stopped_error
from freehold.egress.models.budget import ALL, Budgets, Limits, What
from freehold.egress.models.exchange import Exchange
from freehold.egress.models.folding import fold
from freehold.egress.models.keys import Keys
from freehold.egress.models.ledger import CHANGES, Ledger, Stopped, ensure_tables
from freehold.egress.models.placeholders import Endpoint, Placeholders
from freehold.egress.models.prices import Prices
from freehold.egress.models.provider import Provider
from freehold.egress.models.trial import Trial, try_provider
from freehold.egress.models.upstream import Upstreams
from freehold.egress.models.usage import Usage
from freehold.egress.stream import Stream
from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.timeline import Timeline

log = logging.getLogger(__name__)

RETRY = 1.0
MOMENT = 1.0
PATIENCE = 5.0
DAY = 86_400.0

OnStop = Callable[[Stopped], Awaitable[None]]


class ModelGateway:
    """`async with ModelGateway(...) as models: await computer.listen(models.port, models.handle)`.

    What a room that runs agents needs is `endpoint_for`, `set_turn`, `usage_of`, `end_session` and `on_stop`.
    """

    def __init__(
        self,
        timeline: Timeline,
        providers: Mapping[str, Provider],
        vault: Vault,
        environ: Mapping[str, str],
        *,
        overall: Limits | None = None,
        upstreams: Upstreams | None = None,
        prices: Callable[[str], Prices] = Prices,
    ) -> None:
        self.providers = dict(providers)
        self.ledger = Ledger(timeline)
        self.budgets = Budgets()
        self._timeline = timeline
        self._overall = overall or Limits()
        self._placeholders = Placeholders()
        self._upstreams = upstreams or Upstreams()
        self._tasks = asyncio.TaskGroup()
        self._account = Account(self.ledger, self.budgets, prices, self._tasks.create_task)
        self._keys = Keys(vault, environ)
        self._exchange = Exchange(self.providers, self._placeholders, self._keys, self._upstreams, self._account)
        self._callbacks: list[OnStop] = []
        self._changing = asyncio.Lock()
        self._ready = asyncio.Event()

    @property
    def stopped(self) -> Stopped | None:
        """Since when, and why, while the owner has stopped everything."""
        return self._account.stopped

    async def ready(self) -> None:
        """Until what was spent and set before is known. Raises `models.not-running` when that takes too long."""
        try:
            async with asyncio.timeout(PATIENCE):
                await self._ready.wait()
        except TimeoutError as error:
            raise FreeholdError(
                "models.not-running", "The model gateway has not started", hint="Try again in a moment"
            ) from error

    # For the room that runs agents

    def endpoint_for(self, provider: str | None, session: str) -> Endpoint:
        """Where a session's programs find a provider (None: the first), and the placeholder they use as its key.

        The same each time for the same session, until this process ends. Raises `models.not-found`.
        """
        return self._placeholders.issue(self.provider(provider), session)

    def provider(self, name: str | None) -> Provider:
        """By name, or the first of the manifest. Raises `models.none-configured` or `models.not-found`."""
        if not self.providers:
            raise no_models()
        if name is None:
            return next(iter(self.providers.values()))
        if name not in self.providers:
            raise FreeholdError(
                "models.not-found",
                f"There is no model provider {name!a:.80}",
                hint=f"freehold.toml has: {', '.join(self.providers)}",
            )
        return self.providers[name]

    def set_turn(self, session: str, turn: str | None) -> None:
        """What the session asks from now on belongs to this turn, or to none."""
        if turn is not None:
            self._account.blocked.pop(session, None)
        self._placeholders.set_turn(session, turn)

    def blocked(self, session: str) -> FreeholdError | None:
        """What only the owner can change and stood in the way of the session's turn: a budget, a missing key, a provider that is away."""
        return self._account.blocked.get(session)

    async def usage_of(self, session: str, turn: str | None = None) -> Usage:
        """What a session, or one turn of it, has used by now.

        Waits a moment for requests that are ending; one that goes on counts with what was set aside for it.
        """
        await self.ready()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(MOMENT):
                await self._account.all_closed(session)
        return await asyncio.to_thread(self.ledger.usage, session, turn)

    def end_session(self, session: str) -> None:
        """Its placeholders are worth nothing from now on, and what it has under way is cut. Idempotent."""
        self._account.blocked.pop(session, None)
        self._placeholders.revoke(session)
        self._exchange.cut_session(session, FreeholdError("models.session-ended", "The session has ended"))

    def on_stop(self, callback: OnStop) -> None:
        """Called, once a stop, when the owner has stopped everything; the models are closed before that."""
        self._callbacks.append(callback)

    # For the owner

    async def stop(self, *, who: str = "owner", why: str = "") -> None:
        """The kill switch: cuts what is under way, refuses what comes, and tells the callbacks."""
        await self.ready()
        await asyncio.to_thread(self.ledger.stop, who=who, why=why)
        await self._reload()

    async def resume(self, *, who: str = "owner") -> None:
        await self.ready()
        await asyncio.to_thread(self.ledger.resume, who=who)
        await self._reload()

    async def set_budget(self, scope: str, limits: Limits | None, *, who: str = "owner") -> None:
        """Of a provider or of all (`*`); None gives the word back to the manifest."""
        self._check_scope(scope)
        await self.ready()
        await asyncio.to_thread(self.ledger.set_budget, scope, limits, who=who)
        await self._reload()

    async def lift(self, scope: str, what: What, *, who: str = "owner") -> None:
        """Lets this limit rest for the current day or month."""
        self._check_scope(scope)
        await self.ready()
        await asyncio.to_thread(self.ledger.lift, scope, what, datetime.now(UTC), who=who)
        await self._reload()

    def problem_with(self, provider: Provider) -> FreeholdError | None:
        """Why a provider cannot be asked as far as this machine can tell. Blocking."""
        try:
            self._keys.find(provider)
        except FreeholdError as error:
            return error
        return None

    async def try_out(self, name: str) -> Trial:
        """Asks a provider which models it has, with its key: what costs nothing. Raises `models.not-found`."""
        return await try_provider(self.provider(name), self._keys, self._upstreams)

    def _check_scope(self, scope: str) -> None:
        if scope != ALL:
            self.provider(scope)

    # Running

    async def handle(self, stream: Stream) -> None:
        """Serves one stream from inside to its end, and closes it."""
        await self._exchange.serve(stream)

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(ensure_tables, self._timeline)
        await asyncio.to_thread(self.ledger.close_lost)
        last = await asyncio.to_thread(self._timeline.last)
        await self._reload()
        await self._account.begin()
        await self._tasks.__aenter__()
        self._ready.set()
        self._own = [
            self._tasks.create_task(self._follow(0 if last is None else last.seq)),
            self._tasks.create_task(self._fold_daily()),
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._own:
            task.cancel()
        cancelled = kind is not None and issubclass(kind, asyncio.CancelledError)
        await self._tasks.__aexit__(*((kind, error, trace) if cancelled else (None, None, None)))
        await self._upstreams.close()

    async def _follow(self, after: int) -> None:
        """The command line writes its changes where we read them; they apply here within moments."""
        while True:
            try:
                async with aclosing(self._timeline.follow(after, CHANGES)) as events:
                    async for event in events:
                        after = event.seq
                        await self._reload()
            except FreeholdError as error:
                log.warning("the model gateway cannot see changes of its budgets: %s", error)
                await asyncio.sleep(RETRY)

    async def _fold_daily(self) -> None:
        while True:
            try:
                await asyncio.to_thread(fold, self._timeline, datetime.now(UTC))
            except FreeholdError as error:
                log.warning("what was used long ago cannot be folded: %s", error)
            await asyncio.sleep(DAY)

    async def _reload(self) -> None:
        """Puts in force what the file says now."""
        async with self._changing:
            state = await asyncio.to_thread(
                lambda: (self.ledger.budgets(), self.ledger.lifted(), self.ledger.stopped())
            )
            budgets, lifted, now_stopped = state
            manifest = {name: provider.limits for name, provider in self.providers.items()} | {ALL: self._overall}
            self.budgets.limits = manifest | budgets
            self.budgets.lifted = lifted
            fresh = now_stopped is not None and self._account.stopped != now_stopped
            self._account.stopped = now_stopped
        if now_stopped is None or not fresh:
            return
        self._exchange.cut_all(stopped_error())
        told = await asyncio.gather(*(callback(now_stopped) for callback in self._callbacks), return_exceptions=True)
        for problem in told:
            if isinstance(problem, Exception):
                log.error("not everything could be told to stop", exc_info=problem)


def no_models() -> FreeholdError:
    return FreeholdError(
        "models.none-configured",
        "No model is connected yet",
        hint="freehold models shows how to connect one",
    )
