"""Whether a path, or a word of a command, names a file that runs by itself. Which ones do is in the list beside this."""

import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase, translate
from functools import cache, lru_cache
from posixpath import normpath

from freehold.agents.sessions.self_running_patterns import SELF_RUNNING


@dataclass(frozen=True)
class _Pattern:
    """`names` end a path, or with `inside` lead to everything below them. `order` is its place in the list."""

    order: int
    names: tuple[str, ...]
    inside: bool
    what: str


def _read_patterns() -> Iterator[_Pattern]:
    listed = ((pattern, what) for what, patterns in SELF_RUNNING for pattern in patterns)
    for order, (pattern, what) in enumerate(listed):
        inside = pattern.endswith("/**")
        yield _Pattern(order, tuple(pattern.removesuffix("/**").casefold().split("/")), inside, what)


_PATTERNS = tuple(_read_patterns())
_ONLY_AT_ROOT = frozenset({"etc", "home", "lib", "root", "usr", "var"})
_WORD_END = re.compile(r"[\s`;&|<>(){}=,:]+")
_QUOTES = re.compile(r"['\"\\]")
_GLOB = re.compile(r"[?*\[]")
_ONE_OF = re.compile(r"\[[^/]+?\]")
_PROGRAM = re.compile(r"\s{0,9}[\w./~-]{0,300}\bs?bin/[\w.-]+(?=\s|$)")
"""The program that a command begins with, in a folder of programs: it is run there and not written."""

_MAX_GLOBS = 1_000
"""Characters of all words of a command with a wildcard. Each is compared with the whole list."""
_MAX_PATH = 4096
"""The longest path that Linux opens."""


def describe_self_running(path: str) -> str | None:
    """What starts the file or folder at this absolute path, in plain words. None when nothing is known to.

    Compared as file systems do that ignore case, look-alikes, invisible characters and dots at the end of a name.
    """
    return _describe(path, _find_by_name, fnmatchcase)


def find_self_running_words(command: str) -> Iterator[tuple[str, str]]:
    """The words of a shell command that name such a file, each with what starts it.

    A shell joins quoted parts to one word, and writes the names of files for `?`, `*` and `[`.
    """
    program = _PROGRAM.match(command)
    if program is not None:
        command = command[program.end() :]
    # A quote also parts words: those of a script inside the command.
    texts = (_QUOTES.sub("", command), _QUOTES.sub(" ", command))
    globs = 0
    for word in dict.fromkeys(word for text in texts for word in _WORD_END.split(text)):
        if not _GLOB.search(word):
            what = describe_self_running(word[-_MAX_PATH:])
        elif (globs := globs + len(word)) <= _MAX_GLOBS:
            what = _describe(_ONE_OF.sub("?", word), _find_by_glob, _overlaps)
        else:
            what = "a pattern that is too large to look at"
        if what is not None:
            yield word, what


def _describe(
    path: str, find: Callable[[str], tuple[_Pattern, ...]], is_same: Callable[[str, str], bool]
) -> str | None:
    """`find` returns the patterns whose last name is this one: most names are in none, and that is quick to see."""
    names = tuple(_fold(name) for name in normpath(path).split("/") if name)
    found = (
        pattern
        for end, name in enumerate(names, 1)
        for pattern in find(name)
        if pattern.inside == (end < len(names)) and _matches(names, end, pattern, is_same)
    )
    first = min(found, key=lambda pattern: pattern.order, default=None)
    return first.what if first is not None else None


def _matches(names: tuple[str, ...], end: int, pattern: _Pattern, is_same: Callable[[str, str], bool]) -> bool:
    """Whether the names before `end` end with those of the pattern."""
    start = end - len(pattern.names)
    if start < 0 or (start > 0 and pattern.names[0] in _ONLY_AT_ROOT):
        return False
    return all(map(is_same, names[start:end], pattern.names))


@cache
def _last_names() -> re.Pattern[str]:
    """Compiled at the first use: it is large."""
    return re.compile("|".join({translate(pattern.names[-1]) for pattern in _PATTERNS}))


@lru_cache(maxsize=4096)
def _find_by_name(name: str) -> tuple[_Pattern, ...]:
    if _last_names().match(name) is None:
        return ()
    return tuple(pattern for pattern in _PATTERNS if fnmatchcase(name, pattern.names[-1]))


@lru_cache(maxsize=256)
def _find_by_glob(glob: str) -> tuple[_Pattern, ...]:
    return tuple(pattern for pattern in _PATTERNS if _overlaps(glob, pattern.names[-1]))


def _overlaps(glob: str, pattern: str) -> bool:
    """Whether some name matches both."""
    # Which positions in the pattern are reached after each character of the glob.
    reached = _skip_stars({0}, pattern)
    for char in glob:
        if char == "*":
            reached = set(range(min(reached, default=len(pattern) + 1), len(pattern) + 1))
            continue
        following = {at + 1 for at in reached if at < len(pattern) and (char == "?" or pattern[at] in (char, "?"))}
        stay = {at for at in reached if at < len(pattern) and pattern[at] == "*"}
        reached = _skip_stars(following | stay, pattern)
        if not reached:
            return False
    return len(pattern) in reached


def _skip_stars(reached: set[int], pattern: str) -> set[int]:
    """A star in the pattern can also stand for nothing."""
    for at, char in enumerate(pattern):
        if char == "*" and at in reached:
            reached.add(at + 1)
    return reached


@lru_cache(maxsize=1024)
def _fold(name: str) -> str:
    plain = unicodedata.normalize("NFKC", name)
    plain = "".join(char for char in plain if unicodedata.category(char) not in ("Cf", "Mn"))
    folded = plain.casefold().rstrip(". ") or plain.casefold()
    return ".git" if folded == "git~1" else folded
