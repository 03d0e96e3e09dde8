"""What was used long ago, kept by day instead of by question: reports and sessions add up as before, turns are gone."""

from datetime import datetime, timedelta

from freehold.timeline import Timeline

KEPT_WHOLE = timedelta(days=92)
"""How long every question has a line of its own: the month that a budget counts, and the quarter that is looked at."""

_OLD = """
    SELECT DISTINCT substr(at, 1, 10) FROM models_usage
    WHERE at < ? AND outcome NOT IN ('open', 'folded') ORDER BY 1
"""
# A price that nobody knows stays unknown: such questions never share a line with those that were counted.
_SUMS = """
    SELECT max(id), provider, model, session, sum(requests), sum(input), sum(output), sum(cached), sum(written),
      sum(cost), max(estimated) FROM models_usage
    WHERE at >= ? AND at < ? AND outcome != 'open' GROUP BY provider, model, session, cost IS NULL
"""
_WRITE = """
    INSERT INTO models_usage
      (id, at, provider, model, session, turn, requests, input, output, cached, written, cost, estimated, outcome)
    VALUES (?, ?, ?, ?, ?, NULL, ?, ?, ?, ?, ?, ?, ?, 'folded')
"""


def fold(timeline: Timeline, now: datetime) -> int:
    """Lines that became fewer. Blocking and idempotent; each day is folded whole or not at all."""
    before = (now - KEPT_WHOLE).strftime("%Y-%m-%d")
    return sum(_fold_day(timeline, day) for (day,) in timeline.query(_OLD, (before,)))


def _fold_day(timeline: Timeline, day: str) -> int:
    span = (day, day + "~")
    with timeline.transaction() as tx:
        sums = tx.execute(_SUMS, span).fetchall()
        gone = tx.execute("DELETE FROM models_usage WHERE at >= ? AND at < ? AND outcome != 'open'", span).rowcount
        for number, provider, model, session, *counts in sums:
            # The highest number of those it stands for, so that the newest still come first.
            tx.execute(_WRITE, (number, day, provider, model, session, *counts))
    return gone - len(sums)
