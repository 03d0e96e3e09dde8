"""The only way out of the computer: a proxy that denies by default and records every decision."""

from freehold.egress.connections import EgressCounters, EgressLimits
from freehold.egress.network_request import NetworkRequest, NetworkRequests, OwnerAnswer
from freehold.egress.policy import Decision, EgressPolicy, EgressRule, Mode, parse_pattern
from freehold.egress.rules import EgressRules, ensure_tables
from freehold.egress.service import EgressService, EgressSettings, EgressStatus
from freehold.egress.stream import ByteStream

__all__ = [
    "ByteStream",
    "Decision",
    "EgressCounters",
    "EgressLimits",
    "EgressPolicy",
    "EgressRule",
    "EgressRules",
    "EgressService",
    "EgressSettings",
    "EgressStatus",
    "Mode",
    "NetworkRequest",
    "NetworkRequests",
    "OwnerAnswer",
    "ensure_tables",
    "parse_pattern",
]
