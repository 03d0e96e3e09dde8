"""The gateway's metrics: requests as they are answered, and the state of all programs at each scrape."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import get_args

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from freehold import __version__
from freehold.errors import FreeholdError
from freehold.features import list_features, load_reference
from freehold.gateway.health import find_seal
from freehold.gateway.route_scope import ROUTE_KEY
from freehold.gateway.services import Services
from freehold.keeper.calls import GetKeeperStatus, KeeperStatus, ProgramState
from freehold.observe.metrics import MetricsRegistry, registry
from freehold.observe.probes import HealthMonitor, HealthState
from freehold.observe.process import add_process_metrics
from freehold.observe.tracing import span

METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
# Without an answer of the keeper the other metrics are still served.
KEEPER_TIMEOUT = 2.0


class RequestMetrics:
    """ASGI middleware around the guard: counts requests and answers, refused ones too."""

    def __init__(self, app: ASGIApp, metrics: MetricsRegistry = registry) -> None:
        self._app = app
        self._answers = metrics.counter(
            "freehold_http_requests_total", "Requests answered, by route.", ["method", "route", "status"]
        )
        self._seconds = metrics.histogram(
            "freehold_http_request_seconds", "How long requests took, by route.", ["route"]
        )
        self._sockets = metrics.gauge("freehold_sockets_open", "WebSockets open now.")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            await self._request(scope, receive, send)
        elif scope["type"] == "websocket":
            self._sockets.inc()
            try:
                await self._app(scope, receive, send)
            finally:
                self._sockets.dec()
        else:
            await self._app(scope, receive, send)

    async def _request(self, scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["method"] if scope["method"] in METHODS else "other"
        status = 500

        async def send_and_note(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        begin = time.perf_counter()
        with span("http.request", {"http.request.method": method}, side="server") as seen:
            try:
                await self._app(scope, receive, send_and_note)
            finally:
                # Never the path itself: anyone can choose it, and it may contain private data.
                decided = scope.get(ROUTE_KEY)
                route = decided.path if decided is not None else "refused"
                self._answers.inc(method=method, route=route, status=str(status))
                self._seconds.observe(time.perf_counter() - begin, route=route)
                seen.set("http.route", route)
                seen.set("http.response.status_code", status)


class GatewayMetrics:
    """Updated at each scrape: readiness, components, and the keeper's status of programs and computer."""

    def __init__(self, services: Services, health: HealthMonitor, metrics: MetricsRegistry = registry) -> None:
        self._services = services
        self._health = health
        add_process_metrics(metrics)
        metrics.gauge("freehold_info", "What runs here.", ["version", "manifest"]).set(
            1, version=__version__, manifest=services.loaded.checksum
        )
        self._ready = metrics.gauge("freehold_ready", "1 when sealed and every required component answers.")
        self._component = metrics.gauge("freehold_component", "1 for the state a component is in.", ["name", "state"])
        self._keeper = metrics.gauge("freehold_keeper_answers", "1 when the keeper answered this scrape.")
        self._started = metrics.gauge("freehold_keeper_start_time_seconds", "When the keeper started, since 1970.")
        self._program = metrics.gauge("freehold_program", "1 for the state a program is in.", ["program", "state"])
        self._restarts = metrics.counter(
            "freehold_program_restarts_total", "Restarts since the keeper started.", ["program"]
        )
        self._memory = metrics.gauge("freehold_program_resident_bytes", "Memory of each program.", ["program"])
        self._usage = metrics.gauge("freehold_computer_usage", "What the computer uses, by limit.", ["of"])
        self._events = metrics.counter("freehold_timeline_events_total", "Entries of the timeline.")
        self._metrics = metrics
        self._refresh_features: list[Callable[[], Awaitable[None]]] | None = None

    async def refresh(self) -> None:
        if self._refresh_features is None:  # loaded by the first scrape
            self._refresh_features = [
                load_reference(feature.metrics)(self._metrics, self._services)
                for feature in list_features()
                if feature.metrics is not None
            ]
        for refresh in self._refresh_features:
            await refresh()
        self._ready.set(find_seal(self._services.home) is not None and not self._health.not_ready)
        for component in self._health.states:
            for state in get_args(HealthState):
                self._component.set(component.state == state, name=component.name, state=state)
        with suppress(FreeholdError):
            last = await asyncio.to_thread(self._services.timeline.last)
            self._events.set_total(0 if last is None else last.seq)
        try:
            async with asyncio.timeout(KEEPER_TIMEOUT):
                self._set_program_metrics(await self._services.keeper.call(GetKeeperStatus()))
            self._keeper.set(1)
        except (FreeholdError, TimeoutError):
            self._keeper.set(0)

    def _set_program_metrics(self, status: KeeperStatus) -> None:
        self._started.set(status.keeper.since)
        self._memory.set(status.keeper.memory or 0, program="keeper")
        for program in status.programs:
            self._restarts.set_total(program.restarts, program=program.name)
            self._memory.set(program.memory or 0, program=program.name)
            for state in get_args(ProgramState):
                self._program.set(program.state == state, program=program.name, state=state)
        for name, value in vars(status.usage).items() if status.usage is not None else ():
            if value is not None:
                self._usage.set(value, of=name)
