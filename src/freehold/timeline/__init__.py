"""Everything that happened: append-only, hash-chained, in one SQLite file that several processes write."""

from freehold.timeline.event import Event, Json
from freehold.timeline.timeline import Timeline, Tx
from freehold.timeline.verify import Problem

__all__ = ["Event", "Json", "Problem", "Timeline", "Tx"]
