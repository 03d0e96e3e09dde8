"""The list of escapes: tried by the tests and, on the owner's own machine, by `freehold doctor`."""

from freehold.computer.escapes.bait import Bait, laid_bait
from freehold.computer.escapes.bombs import BOMBS, Bomb
from freehold.computer.escapes.escape import Escape, Outcome, Verdict
from freehold.computer.escapes.files import FILES
from freehold.computer.escapes.kernel import KERNEL
from freehold.computer.escapes.neighbours import NEIGHBOURS
from freehold.computer.escapes.network import NETWORK
from freehold.computer.escapes.processes import PROCESSES
from freehold.computer.escapes.trial import try_bomb, try_escape
from freehold.computer.isolation import keeps_sessions_apart

ESCAPES: tuple[Escape, ...] = (*FILES, *KERNEL, *PROCESSES, *NETWORK, *(NEIGHBOURS if keeps_sessions_apart() else ()))
"""Sessions are not tried on each other where the kernel keeps nobody apart: `Isolation.walls` tells that."""

__all__ = ["BOMBS", "ESCAPES", "Bait", "Bomb", "Escape", "Outcome", "Verdict", "laid_bait", "try_bomb", "try_escape"]
