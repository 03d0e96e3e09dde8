"""How long to wait before a program that died is started again."""

import collections
import random

from freehold.keeper.settings import RestartPolicy


class Backoff:
    """Doubles with every death and recognises a crash loop, until one life is long. Monotonic times only."""

    def __init__(self, policy: RestartPolicy) -> None:
        self._policy = policy
        self._deaths: collections.deque[float] = collections.deque(maxlen=policy.loop_deaths)
        self._count = 0
        self.looping = False

    def died(self, now: float, lived: float) -> float:
        """Note a death after `lived` seconds; the seconds to wait before the next life."""
        if lived > self._policy.loop_window:
            self.forget()
        self._deaths.append(now)
        self._count += 1
        full = len(self._deaths) == self._policy.loop_deaths
        if full and now - self._deaths[0] <= self._policy.loop_window:
            self.looping = True
        if self.looping:
            return self._shortened(self._policy.loop_wait)
        # The exponent is bounded so that the power is.
        wait = self._policy.first * self._policy.factor ** min(self._count - 1, 32)
        return self._shortened(min(wait, self._policy.limit))

    def forget(self) -> None:
        """A long life, or the owner asked for a restart: what was before does not count."""
        self._deaths.clear()
        self._count = 0
        self.looping = False

    def _shortened(self, wait: float) -> float:
        return wait * (1 - self._policy.jitter * random.random())  # noqa: S311 - spreads restarts, guards nothing
