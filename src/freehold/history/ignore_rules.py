"""Ignore rules in the style of .gitignore. An ignored path is not recorded and never changed by a restore."""

import itertools
import re
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

IgnoreMatcher = Callable[[tuple[bytes, ...], int], bool]
_MAX_CACHED = 10_000
_STAR = "[^/]*"
_DEEP = ("(?:.*/)?", ".*")


def compile_ignore_rules(patterns: Sequence[str]) -> IgnoreMatcher | None:
    """A function that tells for a path and its mode whether it is ignored; None when there are no rules.

    The caller asks about the folders of a path first. A pattern with a slash inside is anchored at the persistent folders
    (`workspace/.cache`); a pattern without one matches a name in any folder. A slash at the end means folders only. `!`
    negates a pattern. The last pattern that matches decides.
    """
    rules = [_rule(pattern.strip()) for pattern in patterns if pattern.strip() and not pattern.startswith("#")]
    if not rules:
        return None
    rules.reverse()
    cache: dict[tuple[bytes, ...], list[_Rule]] = {}

    def ignored(path: tuple[bytes, ...], mode: int) -> bool:
        if len(path) == 1:
            return False
        start = path[:2]
        found = cache.get(start)
        if found is None:
            if len(cache) >= _MAX_CACHED:
                cache.clear()
            found = cache[start] = [rule for rule in rules if rule.may_match(start)]
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


class IgnoredFolders:
    """Which folders are ignored, or are in one that is. Each is asked about once. For one operation: it forgets nothing."""

    def __init__(self, ignored: IgnoreMatcher) -> None:
        self._ignored = ignored
        self._known: dict[tuple[bytes, ...], bool] = {(): False}

    def has(self, folder: tuple[bytes, ...]) -> bool:
        known = len(folder)
        while folder[:known] not in self._known:
            known -= 1
        found = self._known[folder[:known]]
        for depth in range(known + 1, len(folder) + 1):
            found = found or self._ignored(folder[:depth], stat.S_IFDIR)
            self._known[folder[:depth]] = found
        return found


@dataclass(frozen=True)
class _Rule:
    keep: bool
    folders_only: bool
    anchored: bool
    expression: "re.Pattern[bytes]"
    start: tuple["re.Pattern[bytes]", ...]
    """Patterns for the first two names of a path, so that most rules need not be tried on most paths."""

    def may_match(self, path: tuple[bytes, ...]) -> bool:
        return all(one.fullmatch(name) for one, name in zip(self.start, path, strict=False))


def _rule(pattern: str) -> _Rule:
    keep = pattern.startswith("!")
    pattern = pattern.removeprefix("!")
    folders_only = pattern.endswith("/")
    pattern = pattern.rstrip("/")
    anchored = "/" in pattern
    pattern = pattern.lstrip("/")
    # A bracket may contain a slash, and `**` may match several names: such patterns cannot be split into names.
    plain = anchored and "**" not in pattern and "[" not in pattern
    start = tuple(_compiled(name) for name in pattern.split("/")[:2]) if plain else ()
    return _Rule(keep, folders_only, anchored, _compiled(pattern), start)


def _compiled(pattern: str) -> "re.Pattern[bytes]":
    return re.compile(_expression(pattern).encode(), re.DOTALL)


def _expression(pattern: str) -> str:
    tokens = [*_tokens(pattern)]
    # What comes after the last `**` needs no second try: once the text between two stars was found, a later place of it
    # leaves no more for the rest than the first one. So the time does not multiply with each star.
    last = max((number for number, token in enumerate(tokens) if token in _DEEP), default=-1)
    stars = [number for number, token in enumerate(tokens) if token == _STAR and number > last]
    if not stars or "[" in pattern:  # a bracket may match a slash, which a star does not
        return "".join(tokens)
    found = "".join(tokens[: stars[0]])
    for start, end in itertools.pairwise(stars):
        found += f"(?>{_STAR}?{''.join(tokens[start + 1 : end])})"
    return found + "".join(tokens[stars[-1] :])


def _tokens(pattern: str) -> Iterator[str]:
    at = 0
    while at < len(pattern):
        rest = pattern[at:]
        if rest.startswith("**/"):
            yield _DEEP[0]
            at += 3
        elif rest.startswith("**"):
            yield _DEEP[1]
            at += 2
        elif rest[0] == "*":
            yield _STAR
            at += 1
        elif rest[0] == "?":
            yield "[^/]"
            at += 1
        elif rest[0] == "[" and "]" in rest[2:]:
            end = rest.index("]", 2)
            inner = rest[1:end].replace("\\", "\\\\")
            yield "[" + ("^" + inner[1:] if inner[0] == "!" else inner) + "]"
            at += end + 1
        else:
            yield re.escape(rest[0])
            at += 1
