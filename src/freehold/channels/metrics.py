"""The metrics of channels."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable

from freehold.channels.outbox import Outbox
from freehold.channels.store import ChannelStore
from freehold.gateway.services import Services
from freehold.observe.metrics import MetricsRegistry


def add_channel_metrics(metrics: MetricsRegistry, services: Services) -> Callable[[], Awaitable[None]]:
    store, outbox = ChannelStore(services.timeline), Outbox(services.timeline)
    states = metrics.gauge("freehold_channels", "Channels, by state.", ["state"])
    waiting = metrics.gauge("freehold_channel_messages_waiting", "Messages that are not sent yet.")
    strangers = metrics.gauge("freehold_channel_strangers", "Messages of strangers, which got no answer.")

    def count() -> tuple[list[str], int, int]:
        try:
            rows = store.list()
        except sqlite3.OperationalError:  # the tables are not made yet
            return [], 0, 0
        unsent = sum(outbox.count_waiting(row.name) for row in rows)
        return ["ok" if row.problem is None else "away" for row in rows], unsent, sum(row.strangers for row in rows)

    async def refresh() -> None:
        found, unsent, unknown = await asyncio.to_thread(count)
        for state in ("ok", "away"):
            states.set(found.count(state), state=state)
        waiting.set(unsent)
        strangers.set(unknown)

    return refresh
