"""Skills that the owner has been shown and may add: what is added is what was shown, whatever its source has by then."""

import time
from collections import OrderedDict
from collections.abc import Iterable, Sequence

from freehold.errors import FreeholdError
from freehold.skills.sources import FoundSkill

KEPT_SECONDS = 3600.0
MAX_KEPT = 64 * 1024 * 1024
"""Bytes of all of them together. The oldest are forgotten."""


class LookedSkills:
    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[float, FoundSkill]] = OrderedDict()

    def keep(self, found: Iterable[FoundSkill]) -> None:
        now = time.monotonic()
        for one in found:
            self._kept[one.package.digest] = (now, one)
            self._kept.move_to_end(one.package.digest)
        size = sum(one.package.size for _, one in self._kept.values())
        while self._kept and (size > MAX_KEPT or next(iter(self._kept.values()))[0] < now - KEPT_SECONDS):
            _, (_, oldest) = self._kept.popitem(last=False)
            size -= oldest.package.size

    def take(self, digests: Sequence[str]) -> list[FoundSkill]:
        """Those with these hashes. Raises `skill.not-looked.conflict` for one that was not shown."""
        for digest in digests:
            if digest not in self._kept:
                raise FreeholdError(
                    "skill.not-looked.conflict",
                    f"The version {digest[:12]} was not looked at in the last hour",
                    hint="Look at the source again",
                )
        return [self._kept[digest][1] for digest in digests]
