"""How much memory one agent of each kind needs: as declared at first, then as measured."""

from collections import deque
from collections.abc import Callable, Iterable

MIN_SAMPLES = 3
"""Measurements of a kind that are needed to replace its declared size."""
MAX_SAMPLES = 32
MIN_SIZE = 8 * 1024**2


class AgentMemory:
    """`declared` returns the size that is assumed for a kind of agent before one was measured, in bytes."""

    def __init__(self, declared: Callable[[str], int]) -> None:
        self._declared = declared
        self._samples: dict[str, deque[int]] = {}

    def learn(self, kind: str, sizes: Iterable[int]) -> None:
        """Adds what running agents of this kind use now."""
        self._samples.setdefault(kind, deque(maxlen=MAX_SAMPLES)).extend(size for size in sizes if size > 0)

    def expect(self, kind: str) -> int:
        """What the next agent of this kind will use. One that runs a large program for a while does not decide it."""
        found = sorted(self._samples.get(kind, ()))
        if len(found) < MIN_SAMPLES:
            return self._declared(kind)
        return max(MIN_SIZE, found[len(found) * 3 // 4])
