"""What the gateway's metrics port tells: requests as they are answered, and the house as it is when it is asked."""

import asyncio
import time
from contextlib import suppress
from typing import Any, get_args

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from freehold import __version__
from freehold.errors import FreeholdError
from freehold.gateway.dispatch import DECIDED
from freehold.gateway.health import find_seal
from freehold.gateway.house import House
from freehold.observe.metrics import Registry, registry
from freehold.observe.probes import Health, State
from freehold.observe.process import add_process_metrics
from freehold.observe.tracing import span

METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
PROGRAM_STATES = ("stopped", "starting", "ready", "unhealthy", "waiting", "crash-looping", "stopping")
# A keeper that does not answer is a fact to tell, not a reason to tell nothing.
PATIENCE = 2.0


class Measured:
    """ASGI middleware around the guard: counts what was asked and what was answered, refusals too."""

    def __init__(self, app: ASGIApp, metrics: Registry = registry) -> None:
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

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        begin = time.perf_counter()
        with span("http.request", **{"http.request.method": method}) as seen:
            try:
                await self._app(scope, receive, send_noted)
            finally:
                # Never the path itself: strangers choose it, and it may hold what only the owner should read.
                decided = scope.get(DECIDED)
                route = decided.path if decided is not None else "refused"
                self._answers.inc(method=method, route=route, status=str(status))
                self._seconds.observe(time.perf_counter() - begin, route=route)
                seen.set("http.route", route)
                seen.set("http.response.status_code", status)


class Measures:
    """Asked at each scrape: readiness, components, and what the keeper says of programs and computer."""

    def __init__(self, house: House, health: Health, metrics: Registry = registry) -> None:
        self._house = house
        self._health = health
        add_process_metrics(metrics)
        metrics.gauge("freehold_info", "What runs here.", ["version", "manifest"]).set(
            1, version=__version__, manifest=house.loaded.checksum
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

    async def refresh(self) -> None:
        self._ready.set(find_seal(self._house.home) is not None and not self._health.missing)
        for component in self._health.states:
            for state in get_args(State):
                self._component.set(component.state == state, name=component.name, state=state)
        with suppress(FreeholdError):
            last = await asyncio.to_thread(self._house.timeline.last)
            self._events.reach(0 if last is None else last.seq)
        try:
            async with asyncio.timeout(PATIENCE):
                self._tell(await self._house.keeper.call("status"))
            self._keeper.set(1)
        except (FreeholdError, TimeoutError):
            self._keeper.set(0)

    def _tell(self, status: dict[str, Any]) -> None:
        keeper = status["keeper"]
        self._started.set(keeper["since"])
        self._memory.set(keeper["memory"] or 0, program="keeper")
        for program in status["programs"]:
            name = program["name"]
            self._restarts.reach(program["restarts"], program=name)
            self._memory.set(program["memory"] or 0, program=name)
            for state in dict.fromkeys((*PROGRAM_STATES, program["state"])):
                self._program.set(program["state"] == state, program=name, state=state)
        for name, value in (status["usage"] or {}).items():
            if value is not None:
                self._usage.set(value, of=name)
