"""Patterns of paths, such as `inbox/**/*.pdf`."""

import re
from functools import lru_cache


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """`*` and `?` stand for characters within a name, `**` for any folders. A pattern that ends in `/` means all below it."""
    parts = pattern.strip("/").split("/")
    if pattern.endswith("/"):
        parts.append("**")
    text = ""
    for number, part in enumerate(parts):
        is_last = number == len(parts) - 1
        if part == "**":
            text += ".+" if is_last else "(?:[^/]+/)*"
            continue
        text += "".join("[^/]*" if one == "*" else "[^/]" if one == "?" else re.escape(one) for one in part)
        text += "" if is_last else "/"
    return re.compile(text, re.DOTALL)


def matches(pattern: str, path: str) -> bool:
    return compile_pattern(pattern).fullmatch(path) is not None
