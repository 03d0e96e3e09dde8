"""Freehold: your own agent computer."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from freehold.client import Freehold as Freehold
    from freehold.computer import Computer as Computer
    from freehold.errors import FreeholdError as FreeholdError

__version__ = "0.1.0"

_EXPORTS = {"Computer": "freehold.computer", "Freehold": "freehold.client", "FreeholdError": "freehold.errors"}


def __getattr__(name: str) -> Any:
    """Load the library's front doors on first use, so that each process imports only its own rooms."""
    module = _EXPORTS.get(name)
    if module is None:
        raise AttributeError(f"module 'freehold' has no attribute {name!r}; it has {', '.join(_EXPORTS)}")
    return getattr(import_module(module), name)
