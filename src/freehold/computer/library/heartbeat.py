"""Whether the other side still breathes: silence of ten seconds is unhealthy, of thirty it is lost."""

from collections.abc import Callable
from typing import Literal

Health = Literal["healthy", "unhealthy", "lost"]
UNHEALTHY_AFTER = 10.0
LOST_AFTER = 30.0
PING_EVERY = 3.0


class Pulse:
    """Pure bookkeeping on an injected clock; whoever owns it asks `health` and sends the pings."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._heard = clock()

    def hear(self) -> None:
        self._heard = self._clock()

    @property
    def silence(self) -> float:
        return self._clock() - self._heard

    @property
    def health(self) -> Health:
        silence = self.silence
        if silence >= LOST_AFTER:
            return "lost"
        return "unhealthy" if silence >= UNHEALTHY_AFTER else "healthy"
