"""The only way out of the computer: a default-deny proxy whose every decision is the owner's and is recorded."""

from freehold.egress.connections import Counters, Limits
from freehold.egress.policy import Decision, Mode, Policy, Rule, parse_pattern
from freehold.egress.questions import Answer, Question, Questions
from freehold.egress.rules import Rules, ensure_tables
from freehold.egress.service import Egress, EgressSettings, Snapshot
from freehold.egress.stream import Stream

__all__ = [
    "Answer",
    "Counters",
    "Decision",
    "Egress",
    "EgressSettings",
    "Limits",
    "Mode",
    "Policy",
    "Question",
    "Questions",
    "Rule",
    "Rules",
    "Snapshot",
    "Stream",
    "ensure_tables",
    "parse_pattern",
]
