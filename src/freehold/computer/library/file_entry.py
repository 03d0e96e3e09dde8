"""Files and search results as the guest describes them, decoded strictly."""

import os
from pathlib import PurePath
from typing import Any, Literal, NamedTuple

from freehold.computer.library.frames import protocol_error

PathLike = str | bytes | PurePath
FileKind = Literal["file", "folder", "link", "other"]
_KINDS = frozenset(("file", "folder", "link", "other"))
_TIME_LIMIT = 1 << 96
"""In nanoseconds: more than any file system has, and a number that can be reckoned with."""


class FileEntry(NamedTuple):
    """A file, folder or link. `name` may contain any bytes except NUL: `os.fsencode` returns them.

    In the result of walk and glob the name is a path relative to the folder that was searched.
    """

    name: str
    kind: FileKind
    size: int
    mtime_ns: int
    mode: int
    target: str | None


class FilePage(NamedTuple):
    """Some entries of a folder, in the order of the bytes of their names. `more` says that others follow."""

    entries: list[FileEntry]
    more: bool


class SearchHit(NamedTuple):
    """A line that matched. `path` is relative to the folder that was searched; `line` and `column` start at 1."""

    path: str
    line: int
    column: int
    text: str


class SearchResult(NamedTuple):
    """`more` says that there are more hits than the limit."""

    hits: list[SearchHit]
    more: bool


def path_to_text(path: PathLike) -> str:
    return path if isinstance(path, str) else os.fsdecode(path)


def read_entry(row: Any) -> FileEntry:
    if (
        type(row) is list
        and len(row) == 6
        and type(row[0]) is str
        and row[1] in _KINDS
        and type(row[2]) is int
        and type(row[3]) is int
        and abs(row[3]) < _TIME_LIMIT
        and type(row[4]) is int
        and (row[5] is None or type(row[5]) is str)
    ):
        return FileEntry._make(row)
    raise protocol_error("a malformed file entry")


def read_search_hit(row: Any) -> SearchHit:
    if type(row) is list and [type(field) for field in row] == [str, int, int, str]:
        return SearchHit._make(row)
    raise protocol_error("a malformed search hit")
