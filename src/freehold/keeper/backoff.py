"""How long to wait before a program that ended is started again."""

import collections
import random

from freehold.keeper.settings import RestartPolicy


class Backoff:
    """The wait doubles with every crash, up to a limit; many crashes in a short time are a crash loop. A long run resets both.

    All times are monotonic.
    """

    def __init__(self, policy: RestartPolicy) -> None:
        self._policy = policy
        self._deaths: collections.deque[float] = collections.deque(maxlen=policy.loop_deaths)
        self._count = 0
        self.looping = False

    def record_death(self, now: float, lived: float) -> float:
        """Record a crash after `lived` seconds; returns the seconds to wait before the next start."""
        if lived > self._policy.loop_window:
            self.reset()
        self._deaths.append(now)
        self._count += 1
        full = len(self._deaths) == self._policy.loop_deaths
        if full and now - self._deaths[0] <= self._policy.loop_window:
            self.looping = True
        if self.looping:
            return self._shortened(self._policy.loop_wait)
        # The limit keeps the power finite.
        wait = self._policy.first * self._policy.factor ** min(self._count - 1, 32)
        return self._shortened(min(wait, self._policy.limit))

    def reset(self) -> None:
        """Forget all crashes: the program ran long, or the owner restarted it."""
        self._deaths.clear()
        self._count = 0
        self.looping = False

    def _shortened(self, wait: float) -> float:
        return wait * (1 - self._policy.jitter * random.random())  # noqa: S311 - spreads restarts, guards nothing
