"""The time of this machine, as long as that does not go back. For what is valid only for a while and only once."""

import time
from collections.abc import Callable


class SteadyClock:
    """Goes on from where it was when the clock of the machine is set back, and goes along when that is set ahead.

    Whatever was forgotten because its time was over would otherwise be valid a second time. Used from one thread only.
    """

    def __init__(self, wall: Callable[[], float], elapsed: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._elapsed = elapsed
        self._now, self._at = wall(), elapsed()

    def __call__(self) -> float:
        at = self._elapsed()
        self._now, self._at = max(self._wall(), self._now + at - self._at), at
        return self._now


steady_time = SteadyClock(lambda: time.time())
"""That of this process."""
