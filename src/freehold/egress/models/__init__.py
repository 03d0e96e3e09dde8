"""The model gateway: it adds keys on the host, and counts every token against the owner's budget."""

from freehold.egress.models.budget import ALL, BudgetLimits
from freehold.egress.models.gateway import ModelGateway
from freehold.egress.models.ledger import ActiveStop, Ledger
from freehold.egress.models.placeholders import Endpoint
from freehold.egress.models.provider import Provider, read_limits, read_providers
from freehold.egress.models.usage import ModelUsage, TokenCounts

__all__ = [
    "ALL",
    "ActiveStop",
    "BudgetLimits",
    "Endpoint",
    "Ledger",
    "ModelGateway",
    "ModelUsage",
    "Provider",
    "TokenCounts",
    "read_limits",
    "read_providers",
]
