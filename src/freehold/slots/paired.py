"""Freeholds that this one is paired with, as slots see them. Whoever knows them fills the box."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from freehold.slots.orchestrator.far_orchestrator import FarOrchestrator

PAIRED = "neighbour:"
"""How the address of a paired Freehold begins in the settings of a slot: `url = "neighbour:NAME"`."""


@dataclass(frozen=True)
class PairedFreehold:
    """One that is reached by signed requests, without a token.

    `sign` makes the header Authorization of a request from its method, address and body. `correct_clock` learns from
    the header `freehold-time` of a refusal, and says whether it is worth to try again.
    """

    url: str
    sign: Callable[[str, str, bytes], str]
    correct_clock: Callable[[str], bool]


@dataclass
class PairedFreeholds:
    """Both raise FreeholdError for a name that is not known. None where no mesh runs."""

    find: Callable[[str], PairedFreehold] | None = None
    runs: "Callable[[str], FarOrchestrator] | None" = None
    """The orchestrator of a neighbour, as work that is sent to it."""
