"""Three-way merge of lines: takes back an old change and keeps later ones."""

from collections.abc import Sequence

from freehold.history.line_matcher import match_lines

MAX_LINES = 5_000


def merge_lines(base: Sequence[bytes], mine: Sequence[bytes], theirs: Sequence[bytes]) -> list[bytes] | None:
    """`base` with the changes of both sides; None when both changed the same or adjacent lines in different ways.

    Also None when that takes too long to find out.
    """
    if max(len(base), len(mine), len(theirs)) > MAX_LINES:
        return None
    ours, others = _edits(base, mine), _edits(base, theirs)
    if ours is None or others is None:
        return None
    edits = sorted({*ours, *others})
    merged: list[bytes] = []
    at = 0
    last_end = -1
    for start, end, lines in edits:
        if start <= last_end:
            return None
        merged.extend(base[at:start])
        merged.extend(lines)
        at = last_end = end
    merged.extend(base[at:])
    return merged


def _edits(base: Sequence[bytes], other: Sequence[bytes]) -> set[tuple[int, int, tuple[bytes, ...]]] | None:
    matched = match_lines(base, other)
    if matched is None:
        return None
    return {(i1, i2, tuple(other[j1:j2])) for tag, i1, i2, j1, j2 in matched if tag != "equal"}
