"""The metrics of SSH access."""

from collections.abc import Awaitable, Callable

from freehold.gateway.services import Services
from freehold.observe.metrics import MetricsRegistry
from freehold.ssh.server_status import count_connections


def add_ssh_metrics(metrics: MetricsRegistry, services: Services) -> Callable[[], Awaitable[None]]:
    connections = metrics.gauge("freehold_ssh_connections", "SSH connections open now.")

    async def refresh() -> None:
        connections.set(await count_connections(services.home) or 0)

    return refresh
