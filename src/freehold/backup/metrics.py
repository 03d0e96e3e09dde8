"""The metrics of backups."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from freehold.backup.status import describe_trouble, read_status
from freehold.gateway.services import Services
from freehold.observe.metrics import MetricsRegistry


def add_backup_metrics(metrics: MetricsRegistry, services: Services) -> Callable[[], Awaitable[None]]:
    last = metrics.gauge("freehold_backup_last_timestamp_seconds", "When the last backup was made; 0 for never.")
    pending = metrics.gauge(
        "freehold_backup_pending_timestamp_seconds",
        "When the first change was seen that is in no backup; 0 while there is none.",
    )
    stored = metrics.gauge("freehold_backup_stored_bytes", "The size of the backups, as of the last verification.")
    failing = metrics.gauge(
        "freehold_backup_failing",
        "1 while backup, verification, trial of a restore or prune failed last, found damage, or a change waits too long.",
    )

    async def refresh() -> None:
        status = await asyncio.to_thread(read_status, services.home)
        last.set(status.last.at if status.last is not None else 0)
        pending.set(status.pending or 0)
        stored.set(status.stored or 0)
        failing.set(0 if describe_trouble(status, has_key=True, now=time.time()) is None else 1)

    return refresh
