"""The metrics of backups."""

import asyncio
from collections.abc import Awaitable, Callable

from freehold.backup.status import read_status
from freehold.gateway.services import Services
from freehold.observe.metrics import MetricsRegistry


def add_backup_metrics(metrics: MetricsRegistry, services: Services) -> Callable[[], Awaitable[None]]:
    last = metrics.gauge("freehold_backup_last_timestamp_seconds", "When the last backup was made; 0 for never.")
    stored = metrics.gauge("freehold_backup_stored_bytes", "The size of the backups, as of the last verification.")
    failing = metrics.gauge("freehold_backup_failing", "1 while the last backup, verification or prune failed.")

    async def refresh() -> None:
        status = await asyncio.to_thread(read_status, services.home)
        last.set(status.last.at if status.last is not None else 0)
        stored.set(status.stored or 0)
        failing.set(1 if status.failure is not None else 0)

    return refresh
