"""Whether a feature has something to do. Until then its service is not loaded."""

import sqlite3
from contextlib import aclosing

from freehold.agents.threads import run_blocking
from freehold.features import Feature
from freehold.gateway.services import Services


def has_work(feature: Feature, services: Services) -> bool:
    """Blocking. True as well for a feature that does not say where its work can be seen."""
    if feature.work is None:
        return True
    section = getattr(services.manifest, feature.name)
    return section != type(section)() or any(_has_row(services, table) for table in feature.work.tables)


async def wait_for_work(feature: Feature, services: Services) -> None:
    """Returns when it has something to do, also when another process has added it."""
    if feature.work is None:
        return
    last = await run_blocking(services.timeline.last)
    if await run_blocking(has_work, feature, services):
        return
    async with aclosing(services.timeline.follow(0 if last is None else last.seq, feature.work.kinds)) as events:
        async for _event in events:
            return


def _has_row(services: Services, table: str) -> bool:
    try:
        return bool(services.timeline.query(f"SELECT 1 FROM {table} LIMIT 1"))  # noqa: S608 - a constant of a feature
    except sqlite3.OperationalError:  # the feature was never used
        return False
