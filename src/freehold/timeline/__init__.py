"""The append-only, hash-chained record of everything that happened, in one SQLite file that several processes write."""

from freehold.timeline.event import Json, TimelineEvent
from freehold.timeline.timeline import Timeline, Transaction
from freehold.timeline.verification import ChainProblem

__all__ = ["ChainProblem", "Json", "Timeline", "TimelineEvent", "Transaction"]
