"""Questions about places and their versions: what lives, what lived at an entry, what differs between two."""

import sqlite3
from collections.abc import Iterator
from typing import Any

from freehold.errors import FreeholdError
from freehold.history.model import Change, ChangeWord, Version

VERSION_COLUMNS = (
    "version.id, version.place, version.born, version.died, version.mode, version.mtime, version.size, "
    "version.content, version.flag, version.ino, version.ctime, version.nlink"
)
LIVE = "version.died IS NULL"
_WIDTH = len(Version._fields)
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
    """Reads through one connection; holds nothing between calls but paths already resolved."""

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
                    f"The history knows no place {place}",
                    hint="freehold history verify says what is damaged",
                )
            place = row[0]
            parts.append(row[1])
        return tuple(reversed(parts))

    def live(self, place: int) -> Version | None:
        row = self._db.execute(f"SELECT {VERSION_COLUMNS} FROM version WHERE place = ? AND {LIVE}", (place,)).fetchone()  # noqa: S608
        return Version._make(row) if row else None

    def live_children(self, place: int) -> list[Version]:
        rows = self._db.execute(
            f"SELECT {VERSION_COLUMNS} FROM place JOIN version ON version.place = place.id AND {LIVE} WHERE place.parent = ?",  # noqa: S608
            (place,),
        )
        return [Version._make(row) for row in rows]

    def inside(self, place: int) -> tuple[dict[bytes, Version], dict[bytes, int]]:
        """The names in a folder that live, and those that once did."""
        rows = self._db.execute(
            f"SELECT place.id, place.name, {VERSION_COLUMNS} FROM place LEFT JOIN version ON version.place = place.id AND {LIVE} WHERE place.parent = ?",  # noqa: S608
            (place,),
        )
        live: dict[bytes, Version] = {}
        dead: dict[bytes, int] = {}
        for row in rows:
            if row[2] is None:
                dead[row[1]] = row[0]
            else:
                live[row[1]] = Version._make(row[2:])
        return live, dead

    def at(self, place: int, entry: int) -> Version | None:
        """The version of a place in the state of an entry."""
        row = self._db.execute(
            f"SELECT {VERSION_COLUMNS} FROM version WHERE place = ? AND born <= ? ORDER BY born DESC LIMIT 1",  # noqa: S608
            (place, entry),
        ).fetchone()
        if row is None or (row[3] is not None and row[3] <= entry):
            return None
        return Version._make(row)

    def children_at(self, place: int, entry: int) -> Iterator[tuple[bytes, Version]]:
        rows = self._db.execute("SELECT id, name FROM place WHERE parent = ? ORDER BY name", (place,)).fetchall()
        for child, name in rows:
            version = self.at(child, entry)
            if version is not None:
                yield name, version

    def compared(self, one: int, other: int) -> Iterator[tuple[int, tuple[bytes, ...], Version | None, Version | None]]:
        """Places whose states differ between two entries: id, path, and both states. Costs what changed, not what exists."""
        low, high = min(one, other), max(one, other)
        rows = self._db.execute(_COMPARED, {"low": low, "high": high, "one": one, "other": other})
        paths: dict[int, tuple[bytes, ...]] = {0: ()}
        for row in rows.fetchall():
            first = _alive(row[3 : 3 + _WIDTH], one)
            second = _alive(row[3 + _WIDTH :], other)
            if first is second or (first is not None and second is not None and first.same_as(second)):
                continue
            parent = row[1]
            above = paths.get(parent)
            if above is None:
                above = paths[parent] = self.path(parent)
            yield row[0], (*above, row[2]), first, second

    def changes(self, old: int, new: int) -> list[Change]:
        """What differs between the states of two entries, in path order; works in both directions."""
        found: list[Change] = []
        for _, path, before, after in self.compared(old, new):
            word: ChangeWord = "added" if before is None else "removed" if after is None else "changed"
            found.append(Change(b"/".join(path), word, before, after))
        found.sort(key=lambda change: change.path)
        return found

    def alive_with_inode(self, ino: int) -> list[Version]:
        rows = self._db.execute(f"SELECT {VERSION_COLUMNS} FROM version WHERE {LIVE} AND ino = ?", (ino,))  # noqa: S608
        return [Version._make(row) for row in rows]


def _alive(row: tuple[Any, ...], entry: int) -> Version | None:
    """The latest version born by then, unless it had died."""
    return None if row[0] is None or (row[3] is not None and row[3] <= entry) else Version._make(row)
