"""Stores old usage by day instead of by request. Totals stay the same; single turns are no longer told apart."""

from datetime import datetime, timedelta

from freehold.timeline import Timeline

ROLL_UP_AFTER = timedelta(days=92)
"""How long every request has its own row, unless the manifest says otherwise: about a quarter."""

_OLD = """
    SELECT DISTINCT substr(at, 1, 10) FROM models_usage
    WHERE at < ? AND outcome NOT IN ('open', 'folded') ORDER BY 1
"""
# Requests of unknown price get rows of their own, so that an unknown price stays unknown.
_SUMS = """
    SELECT max(id), provider, model, session, sum(requests), sum(input), sum(output), sum(cached), sum(written),
      sum(cost), sum(estimated), sum(assumed) FROM models_usage
    WHERE at >= ? AND at < ? AND outcome != 'open' GROUP BY provider, model, session, cost IS NULL
"""
_WRITE = """
    INSERT INTO models_usage
      (id, at, provider, model, session, turn, requests, input, output, cached, written, cost, estimated, assumed,
      outcome)
    VALUES (?, ?, ?, ?, ?, NULL, ?, ?, ?, ?, ?, ?, ?, ?, 'folded')
"""


def find_last_sum(timeline: Timeline) -> str | None:
    """The newest day of which only sums are stored. None also for a home in which no model was ever asked."""
    if not timeline.query("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'models_usage'"):
        return None
    ((day,),) = timeline.query("SELECT max(at) FROM models_usage WHERE outcome = 'folded'")
    return None if day is None else str(day)


def roll_up_usage(timeline: Timeline, now: datetime, after: timedelta = ROLL_UP_AFTER) -> int:
    """Returns the number of removed rows. Blocking and idempotent; each day is one transaction."""
    before = (now - after).strftime("%Y-%m-%d")
    return sum(_roll_up_day(timeline, day) for (day,) in timeline.query(_OLD, (before,)))


def _roll_up_day(timeline: Timeline, day: str) -> int:
    span = (day, day + "~")
    with timeline.transaction() as tx:
        sums = tx.execute(_SUMS, span).fetchall()
        gone = tx.execute("DELETE FROM models_usage WHERE at >= ? AND at < ? AND outcome != 'open'", span).rowcount
        for number, provider, model, session, *counts in sums:
            # The highest id of the rows it replaces, so that the newest still come first.
            tx.execute(_WRITE, (number, day, provider, model, session, *counts))
    return gone - len(sums)
