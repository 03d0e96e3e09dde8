"""What the guest says about files, read strictly."""

import os
from pathlib import PurePath
from typing import Any, Literal, NamedTuple

from freehold.computer.frames import protocol_error

PathLike = str | bytes | PurePath
Kind = Literal["file", "folder", "link", "other"]
_KINDS = frozenset(("file", "folder", "link", "other"))


class Entry(NamedTuple):
    """A file, folder or link. `name` may hold any bytes but NUL: `os.fsencode` gives them back.

    In a walk or glob the name is the path relative to where it began.
    """

    name: str
    kind: Kind
    size: int
    mtime_ns: int
    mode: int
    target: str | None


class Hit(NamedTuple):
    """A line that matched; `path` is relative to where the search began, `line` and `column` count from 1."""

    path: str
    line: int
    column: int
    text: str


class Found(NamedTuple):
    """`more` tells that there were more than were asked for."""

    hits: list[Hit]
    more: bool


def to_text(path: PathLike) -> str:
    return path if isinstance(path, str) else os.fsdecode(path)


def read_entry(row: Any) -> Entry:
    if (
        type(row) is list
        and len(row) == 6
        and type(row[0]) is str
        and row[1] in _KINDS
        and type(row[2]) is int
        and type(row[3]) is int
        and type(row[4]) is int
        and (row[5] is None or type(row[5]) is str)
    ):
        return Entry._make(row)
    raise protocol_error("an entry of a folder that is none")


def read_hit(row: Any) -> Hit:
    if type(row) is list and [type(field) for field in row] == [str, int, int, str]:
        return Hit._make(row)
    raise protocol_error("a search result that is none")
