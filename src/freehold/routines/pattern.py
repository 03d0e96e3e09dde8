"""Patterns of paths, such as `inbox/**/*.pdf`.

Whoever works in the computer chooses the paths, so none may take long. Of several `*` or `**` only the last is tried at all
places: for those before, the first place where what follows them fits is enough (an atomic group).
"""

import re
from collections.abc import Sequence
from functools import lru_cache

SKIP = "**"


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """`*` and `?` stand for characters within a name, `**` for any folders. A pattern that ends in `/` means all below it."""
    parts = pattern.strip("/").split("/")
    if pattern.endswith("/"):
        parts.append(SKIP)
    folders = [SKIP if one == SKIP else _translate_name(one) + "/" for one in parts[:-1]]
    last = ".+" if parts[-1] == SKIP else _translate_name(parts[-1])
    return re.compile(_join(folders, "(?:[^/]+/)*") + last, re.DOTALL)


def matches(pattern: str, path: str) -> bool:
    return compile_pattern(pattern).fullmatch(path) is not None


def _translate_name(name: str) -> str:
    return _join([SKIP if one == "*" else "[^/]" if one == "?" else re.escape(one) for one in name], "[^/]*")


def _join(parts: Sequence[str], skipped: str) -> str:
    """The expressions one after another; each `**` skips what `skipped` matches."""
    runs = [""]
    for one in parts:
        if one == SKIP:
            runs.append("")
        else:
            runs[-1] += one
    first, *others = runs
    if not others:
        return first
    return first + "".join(f"(?>{skipped}?{run})" for run in others[:-1]) + skipped + others[-1]
