"""The gateway's application: its background tasks, and the front door that loads the rest."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from freehold.gateway.addresses import make_addresses
from freehold.gateway.connections import end_revoked_connections
from freehold.gateway.context import RouteContext, make_context
from freehold.gateway.front_door import FrontDoor
from freehold.gateway.run_engine import SessionRunEngine
from freehold.gateway.services import Services
from freehold.gateway.topic_publisher import TopicPublisher
from freehold.timeline.archiver import archive_daily

if TYPE_CHECKING:
    from freehold.gateway.guard import RequestGuard

log = logging.getLogger(__name__)


def build_app(
    services: Services,
    *,
    publisher: TopicPublisher | None = None,
    on_ready: Callable[[], None] | None = None,
    on_loaded: Callable[[], None] | None = None,
    on_failed: Callable[[], None] | None = None,
) -> FrontDoor:
    """The application that is served.

    `on_ready` is called when the background tasks run and the first link to the computer is made or has timed out.
    `on_loaded` is called in a thread when the first request has loaded the routes.
    `on_failed` is called when they have ended by an error: what is served then is not the gateway any more.
    """
    context = make_context(services, publisher or TopicPublisher(services))

    @asynccontextmanager
    async def lifespan(_app: object) -> AsyncIterator[None]:
        try:
            async with _background_tasks(context):
                if on_ready is not None:
                    on_ready()
                yield
        except Exception:  # the server would swallow it and go on
            log.exception("the background tasks of the gateway have failed")
            if on_failed is not None:
                on_failed()
            raise
        context.sign_in.close()

    gateway = services.manifest.gateway
    addresses = make_addresses(
        port=gateway.port, public_url=gateway.public_url, trusted_proxies=gateway.trusted_proxies
    )

    def load() -> "RequestGuard":
        from freehold.gateway.application import build_guard

        guard = build_guard(context, addresses)
        if on_loaded is not None:
            on_loaded()
        return guard

    return FrontDoor(load, lifespan, addresses)


async def _run_engine(services: Services) -> None:
    """Until cancelled."""
    engine = services.slots.engine.engine
    if isinstance(engine, SessionRunEngine) and services.slots.get("orchestrator").implementation == "local":
        await engine.run()


@asynccontextmanager
async def _background_tasks(context: RouteContext) -> AsyncIterator[None]:
    services = context.services
    await context.publisher.start()
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(end_revoked_connections(services.connections, services.sign_ins, services.tokens)),
            group.create_task(services.computer_access.run()),
            group.create_task(context.publisher.run()),
            group.create_task(context.sessions.run()),
            group.create_task(context.preview.ports.watch()),
            group.create_task(context.doctor.run()),
            group.create_task(context.manifest_follower.run()),
            group.create_task(context.tour.run()),
            group.create_task(services.slots.run()),
            group.create_task(_run_engine(services)),
            group.create_task(archive_daily(services.timeline, services.manifest.retention.timeline)),
            group.create_task(context.features.run()),
        ]
        await services.computer_access.wait_for_link()
        yield
        for task in tasks:
            task.cancel()
