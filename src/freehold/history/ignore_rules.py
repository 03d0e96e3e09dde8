"""Paths the owner does not want kept, in the manner of a .gitignore: what is ignored is neither taken nor touched."""

import re
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Ignored = Callable[[tuple[bytes, ...], int], bool]
_MAX_REMEMBERED = 10_000


def compile_patterns(patterns: Sequence[str]) -> Ignored | None:
    """A question about one path and its mode; its folders are asked about first, by whoever walks. None: nothing is ignored.

    A pattern with a slash inside is anchored at the kept folders (`workspace/.cache`), one without matches a name anywhere;
    a slash at the end means folders only; `!` takes back; the last pattern that matches decides.
    """
    rules = [_rule(pattern.strip()) for pattern in patterns if pattern.strip() and not pattern.startswith("#")]
    if not rules:
        return None
    rules.reverse()
    fitting: dict[tuple[bytes, ...], list[_Rule]] = {}

    def ignored(path: tuple[bytes, ...], mode: int) -> bool:
        if len(path) == 1:
            return False
        start = path[:2]
        found = fitting.get(start)
        if found is None:
            if len(fitting) >= _MAX_REMEMBERED:
                fitting.clear()
            found = fitting[start] = [rule for rule in rules if rule.may_fit(start)]
        if not found:
            return False
        whole = b"/".join(path)
        for rule in found:
            if rule.folders_only and not stat.S_ISDIR(mode):
                continue
            if rule.expression.fullmatch(whole if rule.anchored else path[-1]):
                return not rule.keep
        return False

    return ignored


@dataclass(frozen=True)
class _Rule:
    keep: bool
    folders_only: bool
    anchored: bool
    expression: "re.Pattern[bytes]"
    start: tuple["re.Pattern[bytes]", ...]
    """What the first two names of a path must be, so that most paths are asked about by few rules."""

    def may_fit(self, path: tuple[bytes, ...]) -> bool:
        return all(one.fullmatch(name) for one, name in zip(self.start, path, strict=False))


def _rule(pattern: str) -> _Rule:
    keep = pattern.startswith("!")
    pattern = pattern.removeprefix("!")
    folders_only = pattern.endswith("/")
    pattern = pattern.rstrip("/")
    anchored = "/" in pattern
    pattern = pattern.lstrip("/")
    # A bracket may hold a slash and two stars stand for several names: then nothing is told by the single ones.
    plain = anchored and "**" not in pattern and "[" not in pattern
    start = tuple(_compiled(name) for name in pattern.split("/")[:2]) if plain else ()
    return _Rule(keep, folders_only, anchored, _compiled(pattern), start)


def _compiled(pattern: str) -> "re.Pattern[bytes]":
    return re.compile(_expression(pattern).encode(), re.DOTALL)


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
