"""Whether the guest still answers. After 10 s of silence a link is unhealthy, after 30 s it is lost."""

from collections.abc import Callable
from typing import Literal

LinkHealth = Literal["healthy", "unhealthy", "lost"]
UNHEALTHY_AFTER = 10.0
LOST_AFTER = 30.0
PING_EVERY = 3.0


class Heartbeat:
    """Measures silence with an injected clock. The link sends the pings and reads `health`."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._heard = clock()

    def record_activity(self) -> None:
        self._heard = self._clock()

    @property
    def silence(self) -> float:
        return self._clock() - self._heard

    @property
    def health(self) -> LinkHealth:
        silence = self.silence
        if silence >= LOST_AFTER:
            return "lost"
        return "unhealthy" if silence >= UNHEALTHY_AFTER else "healthy"
