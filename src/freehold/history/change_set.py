"""Change sets: what was changed in a working copy, kept in the store until it is merged or dropped."""

import json
import sqlite3
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from freehold.errors import FreeholdError
from freehold.history.model import ChangeWord, PathChange, PathVersion
from freehold.history.states import Places

NamePath = tuple[bytes, ...]
_SIDES = "old_mode, old_mtime, old_size, old_content, mode, mtime, size, content"


@dataclass(frozen=True)
class ChangeSet:
    """`base` is the entry that the working copy was made from. `merged` is the entry that has the changes.

    `skipped` says what of the copy could not be stored, and why.
    """

    name: str
    base: int
    merged: int | None
    skipped: tuple[str, ...]


class ChangeSets:
    """Reads and writes in the caller's transaction. The changes of a merged set are not kept: its entry has them."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def find(self, name: str) -> ChangeSet | None:
        row = self._db.execute("SELECT name, base, merged, skipped FROM change_set WHERE name = ?", (name,)).fetchone()
        return ChangeSet(row[0], row[1], row[2], tuple(json.loads(row[3]))) if row else None

    def get(self, name: str) -> ChangeSet:
        found = self.find(name)
        if found is None:
            raise FreeholdError(
                "history.not-found", f"There are no changes of {name[:60]!a}", hint="They were dropped, or never kept"
            )
        return found

    def add(self, name: str, base: int, changes: Iterable[PathChange], skipped: Sequence[str]) -> None:
        self._db.execute(
            "INSERT INTO change_set (name, base, at, skipped) VALUES (?, ?, ?, ?)",
            (name, base, time.time(), json.dumps(list(skipped))),
        )
        self._db.executemany(
            f"INSERT INTO set_change (change_set, path, {_SIDES}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
            [(name, change.path, *_side(change.old), *_side(change.new)) for change in changes],
        )

    def read(self, name: str) -> list[PathChange]:
        """In path order. The places of the versions are not known: see `locate`."""
        rows = self._db.execute(
            f"SELECT path, {_SIDES} FROM set_change WHERE change_set = ? ORDER BY path",  # noqa: S608
            (name,),
        )
        return [make_change(bytes(row[0]), _version(row[1:5]), _version(row[5:9])) for row in rows]

    def set_merged(self, name: str, entry: int) -> None:
        self._db.execute("UPDATE change_set SET merged = ? WHERE name = ?", (entry, name))
        self._db.execute("DELETE FROM set_change WHERE change_set = ?", (name,))

    def drop(self, name: str) -> None:
        """Idempotent."""
        self._db.execute("DELETE FROM change_set WHERE name = ?", (name,))
        self._db.execute("DELETE FROM set_change WHERE change_set = ?", (name,))

    def locate(self, change: PathChange, places: Places) -> PathChange:
        """The change with the place of its path, which is made when the store does not know it."""
        place = 0
        for name in change.path.split(b"/"):
            known = places.find_child(place, name)
            if known is None:
                known = self._db.execute("INSERT INTO place (parent, name) VALUES (?, ?)", (place, name)).lastrowid
                assert known is not None
            place = known
        old, new = (None if side is None else side._replace(place=place) for side in (change.old, change.new))
        return PathChange(change.path, change.word, old, new)


def make_change(path: bytes, old: PathVersion | None, new: PathVersion | None) -> PathChange:
    word: ChangeWord = "added" if old is None else "removed" if new is None else "changed"
    return PathChange(path, word, old, new)


def make_version(mode: int, mtime: int, size: int, content: int | None) -> PathVersion:
    """A version that no entry has."""
    return PathVersion(0, 0, 0, None, mode, mtime, size, content, 0, 0, 0, 1)


def _side(version: PathVersion | None) -> tuple[int | None, ...]:
    return (None,) * 4 if version is None else (version.mode, version.mtime, version.size, version.content)


def _version(row: tuple[int | None, ...]) -> PathVersion | None:
    mode, mtime, size, content = row
    return None if mode is None else make_version(mode, mtime or 0, size or 0, content)
