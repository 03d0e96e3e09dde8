"""The gateway's application: routes, the guard around them, and what runs beside them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig

from freehold import __version__
from freehold.gateway.addresses import serve_at
from freehold.gateway.dispatch import add_dispatch
from freehold.gateway.examining import Examiner
from freehold.gateway.feeds import Feeds
from freehold.gateway.guard import Guard
from freehold.gateway.house import House
from freehold.gateway.live import end_revoked_connections
from freehold.gateway.needs import read_needs
from freehold.gateway.preview.front import Previews
from freehold.gateway.preview.hosts import PreviewHosts
from freehold.gateway.preview.passes import Passes, read_key
from freehold.gateway.refusals import add_error_answers
from freehold.gateway.routes.agents import add_agents
from freehold.gateway.routes.approvals import add_approvals
from freehold.gateway.routes.credentials import add_credentials
from freehold.gateway.routes.description import add_description
from freehold.gateway.routes.devices import add_devices
from freehold.gateway.routes.doctor import add_doctor
from freehold.gateway.routes.egress import add_egress
from freehold.gateway.routes.files import add_files
from freehold.gateway.routes.history import add_history
from freehold.gateway.routes.models import add_models, add_secrets
from freehold.gateway.routes.offers import add_offers
from freehold.gateway.routes.pages import add_pages
from freehold.gateway.routes.preview import add_preview, describe
from freehold.gateway.routes.probes import add_probes
from freehold.gateway.routes.programs import add_programs
from freehold.gateway.routes.sessions import add_sessions
from freehold.gateway.routes.sign_in import add_sign_in
from freehold.gateway.routes.ssh import add_ssh
from freehold.gateway.routes.terminals import add_terminals
from freehold.gateway.routes.timeline import add_timeline
from freehold.gateway.socket import add_socket
from freehold.gateway.topics import Topic
from freehold.gateway.working import open_room

# The framework's own telemetry holds bodies, messages and tracebacks unmasked, and an environment variable is enough to
# send them away. What is watched is what `freehold.observe` watches.
UNWATCHED: TelemetryConfig = {
    "tracing": False,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": False,
}


def describe_app() -> FastAPI:
    """A bare application with our error answers; no route of the framework's own."""
    app = FastAPI(
        title="Freehold",
        version=__version__,
        description="Your own agent computer. Sign in with a browser, or send `Authorization: Bearer fh_…`.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
        telemetry=UNWATCHED,
        generate_unique_id_function=lambda route: route.name,
    )
    add_error_answers(app)
    add_dispatch(app)
    return app


def build_routes(house: House, feeds: Feeds) -> FastAPI:
    """Every route and socket, unguarded: for the guard below, the API description, and the benchmark's peer."""
    app = describe_app()
    add_probes(app, house, feeds)
    add_programs(app, house)
    app.state.examiner = Examiner(house.home, house.timeline, feeds.topics.add(Topic("doctor", kept=200)))
    add_doctor(app, app.state.examiner)
    app.state.door = add_sign_in(app, house)
    add_credentials(app, house)
    add_devices(app, house)
    add_timeline(app, house)
    add_egress(app, house)
    add_models(app, house)
    add_secrets(app, house)
    add_history(app, house)
    add_files(app, house)
    add_terminals(app, house)
    add_ssh(app, house)
    app.state.hosts = PreviewHosts(house.manifest)
    app.state.passes = Passes(read_key(house.home), house.sessions, house.tokens)
    app.state.ports = add_preview(app, house, feeds.topics, app.state.hosts, app.state.passes)
    app.state.room = room = open_room(house, feeds, app.state.ports, app.state.hosts)
    add_agents(app, house, room)
    add_sessions(app, room)
    add_approvals(app, room)
    add_offers(app, room)
    add_socket(app, feeds.topics)
    add_description(app)
    add_pages(app)
    return app


def build_app(house: House, *, feeds: Feeds | None = None, on_ready: Callable[[], None] | None = None) -> Guard:
    """The application the world sees."""
    feeds = feeds or Feeds(house)
    app = build_routes(house, feeds)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            await feeds.start()
            group = await stack.enter_async_context(asyncio.TaskGroup())
            tasks = [
                group.create_task(end_revoked_connections(house.live, house.sessions, house.tokens)),
                group.create_task(house.sealed.run()),
                group.create_task(feeds.run()),
                group.create_task(app.state.room.run()),
                group.create_task(app.state.ports.watch(describe)),
                group.create_task(app.state.examiner.run()),
            ]
            await house.sealed.first_link()
            if on_ready is not None:
                on_ready()
            yield
            for task in tasks:
                task.cancel()
            app.state.door.close()

    app.router.lifespan_context = lifespan
    gateway = house.manifest.gateway
    addresses = serve_at(port=gateway.port, public_url=gateway.public_url, trusted_proxies=gateway.trusted_proxies)
    return Guard(
        app,
        needs=read_needs(app.routes),
        addresses=addresses,
        sessions=house.sessions,
        tokens=house.tokens,
        live=house.live,
        previews=Previews(house, app.state.hosts, app.state.passes, addresses),
    )
