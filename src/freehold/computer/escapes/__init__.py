"""The list of escapes: tried by the tests and, on the owner's own machine, by `freehold doctor`."""

from freehold.computer.escapes.bait import Bait, laid_bait
from freehold.computer.escapes.escape import Escape, Outcome, Verdict, try_escape
from freehold.computer.escapes.files import FILES
from freehold.computer.escapes.kernel import KERNEL
from freehold.computer.escapes.network import NETWORK
from freehold.computer.escapes.processes import PROCESSES

ESCAPES: tuple[Escape, ...] = (*FILES, *KERNEL, *PROCESSES, *NETWORK)

__all__ = ["ESCAPES", "Bait", "Escape", "Outcome", "Verdict", "laid_bait", "try_escape"]
