"""Paths the owner does not want kept, in the manner of a .gitignore: what is ignored is neither taken nor touched."""

import re
import stat
from collections.abc import Callable, Sequence

Ignored = Callable[[tuple[bytes, ...], int], bool]


def compile_patterns(patterns: Sequence[str]) -> Ignored | None:
    """A question about one path and its mode; its folders are asked about first, by whoever walks. None: nothing is ignored.

    A pattern with a slash inside is anchored at the kept folders (`workspace/.cache`), one without matches a name anywhere;
    a slash at the end means folders only; `!` takes back; the last pattern that matches decides.
    """
    rules = [_rule(pattern.strip()) for pattern in patterns if pattern.strip() and not pattern.startswith("#")]
    if not rules:
        return None

    def ignored(path: tuple[bytes, ...], mode: int) -> bool:
        if len(path) == 1:
            return False
        whole = b"/".join(path)
        for keep, folders_only, anchored, expression in reversed(rules):
            if folders_only and not stat.S_ISDIR(mode):
                continue
            if expression.fullmatch(whole if anchored else path[-1]):
                return not keep
        return False

    return ignored


def _rule(pattern: str) -> tuple[bool, bool, bool, "re.Pattern[bytes]"]:
    keep = pattern.startswith("!")
    pattern = pattern.removeprefix("!")
    folders_only = pattern.endswith("/")
    pattern = pattern.rstrip("/")
    anchored = "/" in pattern
    return keep, folders_only, anchored, re.compile(_expression(pattern.lstrip("/")).encode(), re.DOTALL)


def _expression(pattern: str) -> str:
    found = ""
    at = 0
    while at < len(pattern):
        rest = pattern[at:]
        if rest.startswith("**/"):
            found, at = found + "(?:.*/)?", at + 3
        elif rest.startswith("**"):
            found, at = found + ".*", at + 2
        elif rest[0] == "*":
            found, at = found + "[^/]*", at + 1
        elif rest[0] == "?":
            found, at = found + "[^/]", at + 1
        elif rest[0] == "[" and "]" in rest[2:]:
            end = rest.index("]", 2)
            inner = rest[1:end].replace("\\", "\\\\")
            found += "[" + ("^" + inner[1:] if inner[0] == "!" else inner) + "]"
            at += end + 1
        else:
            found, at = found + re.escape(rest[0]), at + 1
    return found
