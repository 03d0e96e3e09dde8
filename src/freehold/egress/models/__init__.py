"""The way to the models: placeholders inside, keys only here, and every token counted against the owner's budget."""

from freehold.egress.models.budget import ALL, Limits
from freehold.egress.models.gateway import ModelGateway
from freehold.egress.models.ledger import Ledger, Stopped
from freehold.egress.models.placeholders import Endpoint
from freehold.egress.models.provider import PORT, Provider, read_limits, read_providers
from freehold.egress.models.usage import Tokens, Usage

__all__ = [
    "ALL",
    "PORT",
    "Endpoint",
    "Ledger",
    "Limits",
    "ModelGateway",
    "Provider",
    "Stopped",
    "Tokens",
    "Usage",
    "read_limits",
    "read_providers",
]
