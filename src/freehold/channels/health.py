"""The health component of channels. A dead channel is said here, and stops nothing."""

import asyncio
import sqlite3

from freehold.channels.section import ChannelsSection
from freehold.channels.store import ChannelRow, ChannelStore
from freehold.gateway.services import Services
from freehold.observe.probes import Probe, ProbeResult


def make_probe(services: Services) -> Probe:
    store = ChannelStore(services.timeline)

    async def probe() -> ProbeResult | None:
        if not services.manifest.section(ChannelsSection).enabled:
            return ProbeResult("off")
        rows = await asyncio.to_thread(_list, store)
        if not rows:
            return ProbeResult("off")
        problems = [f"{row.name}: {row.problem}" for row in rows if row.problem is not None]
        return ProbeResult("degraded", "; ".join(problems)) if problems else None

    return probe


def _list(store: ChannelStore) -> list[ChannelRow]:
    """Empty before the tables are made."""
    try:
        return store.list()
    except sqlite3.OperationalError:
        return []
