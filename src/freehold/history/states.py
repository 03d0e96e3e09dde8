"""Reads places and their versions: the live ones, those of an entry, and the differences between two entries.

A place is a path that exists or existed; it has an id.
"""

import sqlite3
from collections.abc import Iterator
from typing import Any

from freehold.errors import FreeholdError
from freehold.history.model import ChangeWord, PathChange, PathVersion

VERSION_COLUMNS = (
    "version.id, version.place, version.born, version.died, version.mode, version.mtime, version.size, "
    "version.content, version.flag, version.ino, version.ctime, version.nlink"
)
LIVE = "version.died IS NULL"
_WIDTH = len(PathVersion._fields)
_COMPARED = f"""
    SELECT place.id, place.parent, place.name, {VERSION_COLUMNS.replace("version.", "first.")}, {VERSION_COLUMNS.replace("version.", "second.")}
    FROM (
        SELECT place FROM version WHERE born > :low AND born <= :high
        UNION SELECT place FROM version WHERE died > :low AND died <= :high
    ) AS touched
    JOIN place ON place.id = touched.place
    LEFT JOIN version AS first ON first.id = (
        SELECT id FROM version WHERE place = touched.place AND born <= :one ORDER BY born DESC LIMIT 1
    )
    LEFT JOIN version AS second ON second.id = (
        SELECT id FROM version WHERE place = touched.place AND born <= :other ORDER BY born DESC LIMIT 1
    )
    WHERE NOT (
        first.id IS NOT NULL AND second.id IS NOT NULL
        AND (first.died IS NULL OR first.died > :one) AND (second.died IS NULL OR second.died > :other)
        AND first.mode = second.mode AND first.mtime = second.mtime AND first.size = second.size
        AND first.content IS second.content AND first.nlink = 1 AND second.nlink = 1
    )
"""  # noqa: S608


class Places:
    """Reads through one connection. Holds no state between calls."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def find_child(self, parent: int, name: bytes) -> int | None:
        row = self._db.execute("SELECT id FROM place WHERE parent = ? AND name = ?", (parent, name)).fetchone()
        return row[0] if row else None

    def find(self, path: tuple[bytes, ...]) -> int | None:
        place: int | None = 0
        for name in path:
            if place is None:
                return None
            place = self.find_child(place, name)
        return place

    def path(self, place: int) -> tuple[bytes, ...]:
        parts: list[bytes] = []
        while place:
            row = self._db.execute("SELECT parent, name FROM place WHERE id = ?", (place,)).fetchone()
            if row is None:
                raise FreeholdError(
                    "history.damaged",
                    f"The history has no place {place}",
                    hint="To list all damage: freehold history verify",
                )
            place = row[0]
            parts.append(row[1])
        return tuple(reversed(parts))

    def live(self, place: int) -> PathVersion | None:
        row = self._db.execute(f"SELECT {VERSION_COLUMNS} FROM version WHERE place = ? AND {LIVE}", (place,)).fetchone()  # noqa: S608
        return PathVersion._make(row) if row else None

    def live_children(self, place: int) -> list[PathVersion]:
        rows = self._db.execute(
            f"SELECT {VERSION_COLUMNS} FROM place JOIN version ON version.place = place.id AND {LIVE} WHERE place.parent = ?",  # noqa: S608
            (place,),
        )
        return [PathVersion._make(row) for row in rows]

    def inside(self, place: int) -> tuple[dict[bytes, PathVersion], dict[bytes, int]]:
        """The names in a folder that exist now, and those that existed before."""
        rows = self._db.execute(
            f"SELECT place.id, place.name, {VERSION_COLUMNS} FROM place LEFT JOIN version ON version.place = place.id AND {LIVE} WHERE place.parent = ?",  # noqa: S608
            (place,),
        )
        live: dict[bytes, PathVersion] = {}
        dead: dict[bytes, int] = {}
        for row in rows:
            if row[2] is None:
                dead[row[1]] = row[0]
            else:
                live[row[1]] = PathVersion._make(row[2:])
        return live, dead

    def at(self, place: int, entry: int) -> PathVersion | None:
        """The version of a place in the state of an entry."""
        row = self._db.execute(
            f"SELECT {VERSION_COLUMNS} FROM version WHERE place = ? AND born <= ? ORDER BY born DESC LIMIT 1",  # noqa: S608
            (place, entry),
        ).fetchone()
        if row is None or (row[3] is not None and row[3] <= entry):
            return None
        return PathVersion._make(row)

    def compare(
        self, one: int, other: int
    ) -> Iterator[tuple[int, tuple[bytes, ...], PathVersion | None, PathVersion | None]]:
        """Places that differ between two entries: id, path and both versions. The cost depends on what changed, not on what exists."""
        low, high = min(one, other), max(one, other)
        rows = self._db.execute(_COMPARED, {"low": low, "high": high, "one": one, "other": other})
        paths: dict[int, tuple[bytes, ...]] = {0: ()}
        for row in rows.fetchall():
            first = _alive(row[3 : 3 + _WIDTH], one)
            second = _alive(row[3 + _WIDTH :], other)
            if first is second or (first is not None and second is not None and first.is_same_as(second)):
                continue
            parent = row[1]
            above = paths.get(parent)
            if above is None:
                above = paths[parent] = self.path(parent)
            yield row[0], (*above, row[2]), first, second

    def list_changes(self, old: int, new: int) -> list[PathChange]:
        """The differences between two entries, in path order and in either direction."""
        found: list[PathChange] = []
        for _, path, before, after in self.compare(old, new):
            word: ChangeWord = "added" if before is None else "removed" if after is None else "changed"
            found.append(PathChange(b"/".join(path), word, before, after))
        found.sort(key=lambda change: change.path)
        return found

    def find_live_with_inode(self, ino: int) -> list[PathVersion]:
        rows = self._db.execute(f"SELECT {VERSION_COLUMNS} FROM version WHERE {LIVE} AND ino = ?", (ino,))  # noqa: S608
        return [PathVersion._make(row) for row in rows]


def _alive(row: tuple[Any, ...], entry: int) -> PathVersion | None:
    """The version of this row, unless it had ended before the entry."""
    return None if row[0] is None or (row[3] is not None and row[3] <= entry) else PathVersion._make(row)
