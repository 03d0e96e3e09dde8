"""The running model gateway of one Freehold: it serves streams from inside and sends requests to providers."""

import asyncio
import contextlib
import logging
from collections import ChainMap
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Self

from freehold.egress.change_feed import reload_on_change
from freehold.egress.models.billing import Billing
from freehold.egress.models.billing import stopped_error as stopped_error
from freehold.egress.models.budget import ALL, BudgetLimits, Budgets, LimitName
from freehold.egress.models.codex_sign_in import CodexRefresher
from freehold.egress.models.keys import Keys
from freehold.egress.models.ledger import CHANGES, ActiveStop, Ledger, ensure_tables
from freehold.egress.models.open_requests import FILE_NAME, OpenRequests
from freehold.egress.models.placeholders import Endpoint, Placeholders
from freehold.egress.models.prices import Prices
from freehold.egress.models.provider import Provider
from freehold.egress.models.provider_check import ProviderCheck, check_provider, try_provider
from freehold.egress.models.request_server import ModelRequestServer
from freehold.egress.models.upstream import UpstreamPool
from freehold.egress.models.usage import ModelUsage
from freehold.egress.models.usage_rollup import ROLL_UP_AFTER, roll_up_usage
from freehold.egress.stream import ByteStream
from freehold.egress.vault import Vault
from freehold.errors import FreeholdError
from freehold.observe.secrets import Secret
from freehold.timeline import Timeline

log = logging.getLogger(__name__)

CLOSING_TIMEOUT = 1.0
START_TIMEOUT = 5.0
ROLL_UP_INTERVAL = 86_400.0

OnStop = Callable[[ActiveStop], Awaitable[None]]


class ModelGateway:
    """`async with ModelGateway(...) as models: await computer.listen(models.port, models.handle)`.

    The agents' room uses `endpoint_for`, `set_turn`, `usage_of`, `end_session` and `on_stop`.
    """

    def __init__(
        self,
        timeline: Timeline,
        providers: Mapping[str, Provider],
        vault: Vault,
        environ: Mapping[str, str],
        *,
        overall: BudgetLimits | None = None,
        upstreams: UpstreamPool | None = None,
        prices: Callable[[str], Prices] = Prices,
        roll_up_after: timedelta = ROLL_UP_AFTER,
    ) -> None:
        self.providers = dict(providers)
        self._own: dict[str, Provider] = {}
        self.ledger = Ledger(timeline)
        self.budgets = Budgets()
        self._timeline = timeline
        self._overall = overall or BudgetLimits()
        self._roll_up_after = roll_up_after
        self._placeholders = Placeholders()
        self._upstreams = upstreams or UpstreamPool()
        self._tasks = asyncio.TaskGroup()
        self._open_requests = OpenRequests(timeline.path.with_name(FILE_NAME))
        self._billing = Billing(self.ledger, self._open_requests, self.budgets, prices, self._tasks.create_task)
        self._keys = Keys(vault, environ, CodexRefresher(vault, self._upstreams))
        self._server = ModelRequestServer(
            ChainMap(self.providers, self._own), self._placeholders, self._keys, self._upstreams, self._billing
        )
        self._callbacks: list[OnStop] = []
        self._changing = asyncio.Lock()
        self._ready = asyncio.Event()
        self._stopping: asyncio.Task[None] | None = None

    @property
    def stopped(self) -> ActiveStop | None:
        """The kill switch while it is on; None otherwise."""
        return self._billing.stopped

    async def wait_ready(self) -> None:
        """Waits until spending and budgets are read. Raises `models.not-running` when that takes too long."""
        try:
            async with asyncio.timeout(START_TIMEOUT):
                await self._ready.wait()
        except TimeoutError as error:
            raise FreeholdError(
                "models.not-running", "The model gateway has not started", hint="Try again in a moment"
            ) from error

    # For the agents' room

    def endpoint_for(self, provider: str | None, session: str) -> Endpoint:
        """The address and placeholder by which a session's programs use a provider (None: the first).

        The same each time for the same session, until this process ends. Raises `models.not-found`.
        """
        return self._placeholders.issue(self.provider(provider), session)

    def provider(self, name: str | None) -> Provider:
        """The provider by name, or the first of the manifest. Raises `models.none-configured` or `models.not-found`."""
        if name is not None and name in self._own and name not in self.providers:
            return self._own[name]
        if not self.providers:
            raise no_models()
        if name is None:
            return next(iter(self.providers.values()))
        if name not in self.providers:
            raise FreeholdError(
                "models.not-found",
                f"There is no model provider {name!a:.80}",
                hint=f"Connected are: {', '.join(self.providers)}",
            )
        return self.providers[name]

    def set_turn(self, session: str, turn: str | None) -> None:
        """Requests of the session belong to this turn from now on, or to none."""
        if turn is not None:
            self._billing.blocked.pop(session, None)
        self._placeholders.set_turn(session, turn)

    def blocked(self, session: str) -> FreeholdError | None:
        """The problem of the session's turn that only the owner can solve: a budget, a missing key, an unreachable provider."""
        return self._billing.blocked.get(session)

    async def usage_of(self, session: str, turn: str | None = None) -> ModelUsage:
        """What a session, or one turn of it, has used so far.

        Waits a moment for requests that are ending. One that still runs counts with what was seen of it; budgets
        count it at its most.
        """
        await self.wait_ready()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSING_TIMEOUT):
                await self._billing.wait_closed(session)
        recorded = await asyncio.to_thread(self.ledger.usage, session, turn)
        return recorded + self._billing.running_usage(session, turn)

    def end_session(self, session: str) -> None:
        """Revokes the session's placeholders and cuts its running requests. Idempotent."""
        self._billing.blocked.pop(session, None)
        self._placeholders.revoke(session)
        self._server.cut_session(session, FreeholdError("models.session-ended", "The session has ended"))

    def on_stop(self, callback: OnStop) -> None:
        """Adds a callback for the kill switch. Model requests are already refused when it is called."""
        self._callbacks.append(callback)

    # For the owner

    async def stop(self, *, who: str = "owner", why: str = "") -> None:
        """The kill switch: cuts running requests, refuses new ones, and returns when the callbacks have ended."""
        await self.wait_ready()
        await asyncio.to_thread(self.ledger.stop, who=who, why=why)
        await self._reload()
        if self._stopping is not None:
            await asyncio.wait((self._stopping,))

    async def read_stop(self) -> ActiveStop | None:
        """The kill switch as it is stored now, also when another process has just changed it."""
        await self.wait_ready()
        await self._reload()
        return self.stopped

    async def resume(self, *, who: str = "owner") -> None:
        await self.wait_ready()
        await asyncio.to_thread(self.ledger.resume, who=who)
        await self._reload()

    async def set_budget(self, scope: str, limits: BudgetLimits | None, *, who: str = "owner") -> None:
        """Sets the budget of a provider or of all (`*`). None restores the manifest's."""
        self._check_scope(scope)
        await self.wait_ready()
        await asyncio.to_thread(self.ledger.set_budget, scope, limits, who=who)
        await self._reload()

    async def lift(self, scope: str, what: LimitName, *, who: str = "owner") -> None:
        """Ignores this limit for the rest of the day or month."""
        self._check_scope(scope)
        await self.wait_ready()
        await asyncio.to_thread(self.ledger.lift, scope, what, datetime.now(UTC), who=who)
        await self._reload()

    async def set_providers(self, providers: Mapping[str, Provider], overall: BudgetLimits) -> None:
        """Applies the manifest's providers and its budget for all of them. Sessions that run go on.

        Requests to a provider that is gone are refused from now on. One that runs goes on to its end.
        """
        self._overall = overall
        self.providers.clear()
        self.providers.update(providers)
        self._upstreams.drop_idle()
        if self._ready.is_set():
            await self._reload()

    def serve_own(self, provider: Provider) -> None:
        """Adds a provider of Freehold itself. Only a session that names it uses it, and it is not listed."""
        self._own[provider.name] = provider

    def problem_with(self, provider: Provider) -> FreeholdError | None:
        """Why a provider cannot be used, as far as this machine knows. Blocking."""
        try:
            self._keys.find(provider)
        except FreeholdError as error:
            return error
        return None

    async def check_provider(self, name: str) -> ProviderCheck:
        """Asks a provider for its list of models, which is free. Raises `models.not-found`."""
        return await check_provider(self.provider(name), self._keys, self._upstreams)

    async def try_provider(self, provider: Provider, key: Secret | None) -> ProviderCheck:
        """For a provider that is not connected yet: its list of models, and a word of its model. Nothing is stored."""
        return await try_provider(provider, key, self._upstreams, provider.model)

    def _check_scope(self, scope: str) -> None:
        if scope != ALL:
            self.provider(scope)

    # Running

    async def handle(self, stream: ByteStream) -> None:
        """Serves one stream from inside to its end, and closes it."""
        await self._server.serve(stream)

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(ensure_tables, self._timeline)
        await asyncio.to_thread(self._count_lost)
        last = await asyncio.to_thread(self._timeline.last)
        await self._tasks.__aenter__()
        await self._reload()
        await self._billing.begin()
        self._ready.set()
        self._background = [
            self._tasks.create_task(
                reload_on_change(self._timeline, 0 if last is None else last.seq, CHANGES, self._reload)
            ),
            self._tasks.create_task(self._roll_up_daily()),
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._background:
            task.cancel()
        cancelled = kind is not None and issubclass(kind, asyncio.CancelledError)
        await self._tasks.__aexit__(*((kind, error, trace) if cancelled else (None, None, None)))
        await self._upstreams.close()
        self._open_requests.close()

    def _count_lost(self) -> None:
        """Blocking."""
        self.ledger.close_lost(self._open_requests.load())
        self._open_requests.clear()

    async def _roll_up_daily(self) -> None:
        while True:
            try:
                await asyncio.to_thread(roll_up_usage, self._timeline, datetime.now(UTC), self._roll_up_after)
            except FreeholdError as error:
                log.warning("old usage cannot be rolled up: %s", error)
            await asyncio.sleep(ROLL_UP_INTERVAL)

    async def _reload(self) -> None:
        """Applies what is stored now."""
        async with self._changing:
            state = await asyncio.to_thread(
                lambda: (self.ledger.budgets(), self.ledger.lifted(), self.ledger.stopped())
            )
            budgets, lifted, now_stopped = state
            manifest = {name: provider.limits for name, provider in self.providers.items()} | {ALL: self._overall}
            self.budgets.limits = manifest | budgets
            self.budgets.lifted = lifted
            is_new = now_stopped is not None and self._billing.stopped != now_stopped
            self._billing.stopped = now_stopped
            if now_stopped is not None and is_new:
                self._server.cut_all(stopped_error())
                self._upstreams.drop_idle()
                # Nothing waits for it here: the owner may lift it, or change a budget, while agents still end.
                self._stopping = self._tasks.create_task(self._call_back(now_stopped))

    async def _call_back(self, stop: ActiveStop) -> None:
        results = await asyncio.gather(*(callback(stop) for callback in self._callbacks), return_exceptions=True)
        for problem in results:
            if isinstance(problem, Exception):
                log.error("a callback of the kill switch failed", exc_info=problem)


def no_models() -> FreeholdError:
    return FreeholdError(
        "models.none-configured",
        "No model is connected",
        hint="freehold models shows how to connect one",
    )
