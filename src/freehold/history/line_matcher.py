"""Which lines of two texts are the same, within a limit of work: an agent can write texts that take minutes to compare."""

from collections.abc import Sequence
from difflib import Match, SequenceMatcher
from itertools import accumulate

MAX_WORK = 20_000_000
"""Pairs of lines that are looked at: some seconds."""

Opcode = tuple[str, int, int, int, int]


class _TooMuchWorkError(Exception):
    pass


class _LimitedMatcher(SequenceMatcher[bytes]):
    """Every search looks at each line, and at all lines of the other text that are the same."""

    a: Sequence[bytes]
    b2j: dict[bytes, list[int]]
    """The places of each line in the new text, without lines that are everywhere."""

    def __init__(self, old: Sequence[bytes], new: Sequence[bytes]) -> None:
        super().__init__(None, old, new)
        places = self.b2j
        self._work = list(accumulate((1 + len(places.get(line, ())) for line in old), initial=0))
        self._left = MAX_WORK

    def find_longest_match(self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None) -> Match:
        self._left -= self._work[len(self.a) if ahi is None else ahi] - self._work[alo]
        if self._left < 0:
            raise _TooMuchWorkError
        return super().find_longest_match(alo, ahi, blo, bhi)


def match_lines(old: Sequence[bytes], new: Sequence[bytes]) -> list[Opcode] | None:
    """How to turn the old lines into the new ones, as `SequenceMatcher.get_opcodes`. None when it is too much work."""
    try:
        return list(_LimitedMatcher(old, new).get_opcodes())
    except _TooMuchWorkError:
        return None
