"""The list of escape attempts. The tests run it, and so does `freehold doctor` on the owner's machine."""

from freehold.computer.escapes.bait import Bait, placed_bait
from freehold.computer.escapes.bombs import BOMBS, Bomb
from freehold.computer.escapes.escape import EscapeAttempt, Outcome, Verdict
from freehold.computer.escapes.files import FILES
from freehold.computer.escapes.kernel import KERNEL
from freehold.computer.escapes.neighbours import NEIGHBOURS
from freehold.computer.escapes.network import NETWORK
from freehold.computer.escapes.processes import PROCESSES
from freehold.computer.escapes.trial import try_bomb, try_escape, try_escapes
from freehold.computer.walls.landlock import can_separate_sessions

ESCAPES: tuple[EscapeAttempt, ...] = (
    *FILES,
    *KERNEL,
    *PROCESSES,
    *NETWORK,
    *(NEIGHBOURS if can_separate_sessions() else ()),
)
"""Without Landlock in the kernel sessions are not separated, and the attempts between sessions are left out."""

__all__ = [
    "BOMBS",
    "ESCAPES",
    "Bait",
    "Bomb",
    "EscapeAttempt",
    "Outcome",
    "Verdict",
    "placed_bait",
    "try_bomb",
    "try_escape",
    "try_escapes",
]
