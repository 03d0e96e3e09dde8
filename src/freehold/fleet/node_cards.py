"""The GPUs of a node: each is in one computer at a time."""

import contextlib
from collections.abc import Iterator

from freehold.errors import FreeholdError
from freehold.gpu.section import GpuSection


class NodeCards:
    """`cards` are the numbers that the owner of the node has named when it joined."""

    def __init__(self, cards: tuple[int, ...]) -> None:
        self._free = sorted(cards)

    @contextlib.contextmanager
    def held(self, count: int) -> Iterator[tuple[str, ...]]:
        """The devices of so many cards, until the block ends. Raises `fleet.busy`."""
        if count > len(self._free):
            raise FreeholdError(
                "fleet.busy",
                f"{count} GPUs are wanted, and {len(self._free)} of this node are free",
                hint="Name its cards when it joins: freehold fleet join CODE --card 0",
            )
        taken, self._free = self._free[:count], self._free[count:]
        try:
            yield GpuSection(enabled=True, cards=tuple(taken)).list_devices() if taken else ()
        finally:
            self._free = sorted([*self._free, *taken])
