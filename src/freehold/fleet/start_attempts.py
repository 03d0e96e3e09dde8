"""How often a computer is tried on nodes that answer and cannot start it, and on which it is not tried again."""

from freehold.errors import FreeholdError

PAUSE = 1.0
MAX_BUSY = 30
"""Attempts while the cards of a node are in use. Those of an earlier head's computers are free after a while."""
MAX_FAILURES = 5
"""Attempts that fail otherwise: the disk of a node is full, or a folder changes whenever it is sent."""
_RETRIED = ("fleet.busy", "fleet.lost", "fleet.cut-short", "fleet.failed")


class StartAttempts:
    """Of one computer. `avoided` are nodes that it is not tried on again while others could hold it."""

    def __init__(self) -> None:
        self.avoided: set[str] = set()
        self._busy = 0
        self._failures = 0

    def note(self, trouble: FreeholdError, node: str, *, is_lost: bool) -> None:
        """One attempt that has failed. Raises `trouble` after too many. A node that is lost is nobody's failure."""
        if trouble.code not in _RETRIED:
            raise trouble
        if trouble.code == "fleet.busy":
            self._busy += 1
        elif not is_lost:
            self._failures += 1
            self.avoided.add(node)
        if self._busy > MAX_BUSY or self._failures >= MAX_FAILURES:
            raise trouble

    @property
    def pause(self) -> float:
        """Seconds until the next attempt. The first one that fails may be the last."""
        return PAUSE if self._busy or self._failures > 1 else 0.0
