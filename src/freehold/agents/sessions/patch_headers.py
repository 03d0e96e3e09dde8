"""The files that a patch names in its headers: of Git, of diff, or of the form that models write (`*** Add File:`)."""

import re
from collections.abc import Iterator

_MARKS = ("+++", "---", "***", "rename ", "copy ", "diff --", "Index:")
_HEADER = re.compile(
    r"(?P<plain>\*\*\* (?:Add|Update|Delete|Move|Rename) (?:File|to):)(?P<file>.*)"
    r"|(?:\+\+\+ |--- |Index:|rename (?:from|to) |copy (?:from|to) |diff --(?:cc|combined) )(?P<path>.+)"
    r"|diff --git (?P<pair>.+)"
)
# Possessive: a quote that does not end is seen in one pass.
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*+)"')
_TWO_QUOTED = re.compile(rf"({_QUOTED.pattern}) ({_QUOTED.pattern})")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)", re.S)
_ESCAPED = {b"a": b"\a", b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t", b"v": b"\v"}


def find_patched_paths(text: str) -> Iterator[str | None]:
    """The files that the headers of a patch name. None for a header that cannot be read."""
    if not any(mark in text for mark in _MARKS):
        return
    for line in text.splitlines():
        header = _HEADER.match(line.lstrip(" \t\v\f\ufeff\xa0"))
        if header is None:
            continue
        if header["plain"] is not None:
            path = header["file"].strip()
            # Programs disagree about what a colon in such a name means.
            yield path if path and ":" not in path else None
        elif header["pair"] is not None:
            yield from _split_pair(header["pair"].rstrip())
        else:
            path_or_none = _read_path(header["path"].split("\t")[0].strip())
            if path_or_none != "/dev/null":
                yield path_or_none


def _split_pair(pair: str) -> Iterator[str | None]:
    """The two paths of `diff --git`. Without quotes there is no mark between them."""
    quoted = _TWO_QUOTED.fullmatch(pair)
    middle = len(pair) // 2
    if quoted is not None:
        found = [quoted[1], quoted[3]]
    elif pair[:middle].removeprefix("a/") == pair[middle + 1 :].removeprefix("b/"):
        found = [pair[:middle]]
    else:
        found = pair.split(" ")
    if len(found) > 2 or (len(found) == 2 and pair.count('"') not in (0, 4)):
        yield None
        return
    for path in found:
        yield _read_path(path)


def _read_path(path: str) -> str | None:
    """Without the quotes and escapes of Git, and without the `a/` or `b/` before it."""
    if path.startswith('"'):
        quoted = _QUOTED.fullmatch(path)
        if quoted is None:
            return None
        try:
            path = _ESCAPE.sub(_unescape, quoted[1].encode()).decode()
        except (UnicodeError, ValueError):
            return None
    return path.removeprefix(path[:2] if path.startswith(("a/", "b/")) else "") or None


def _unescape(match: re.Match[bytes]) -> bytes:
    given = match[1]
    return bytes([int(given, 8)]) if len(given) == 3 else _ESCAPED.get(given, given)
