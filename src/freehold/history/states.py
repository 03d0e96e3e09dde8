"""Reads places and their versions: the live ones, those of an entry, and the differences between two entries.

A place is a path that exists or existed; it has an id.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any

from freehold.errors import FreeholdError
from freehold.history.model import ChangeWord, PathChange, PathVersion
from freehold.history.slices import sort_in_slices

LIVE = "version.died IS NULL"
_OWN = ("id", "place", "born", "died")
_SHARED = ("mode", "mtime", "size", "content", "flag", "ino", "ctime", "nlink")


def _columns(version: str, node: str) -> str:
    """The columns of a `PathVersion`. A file with several names has one state for all of them."""
    own = [f"{version}.{name}" for name in _OWN]
    shared = [f"CASE WHEN {node}.id IS NULL THEN {version}.{name} ELSE {node}.{name} END" for name in _SHARED]
    return ", ".join([*own, *shared, f"{version}.node"])


_LIVE_COLUMNS = _columns("version", "node")
_LIVE_NODE = "LEFT JOIN node_version AS node ON version.node != 0 AND node.node = version.node AND node.died IS NULL"
_NAMES_PER_QUERY = 100
_WIDTH = len(PathVersion._fields)
_COMPARED = f"""
    SELECT place.id, place.parent, place.name, {_columns("first", "first_node")}, {_columns("second", "second_node")}
    FROM (
        SELECT place FROM version WHERE born > :low AND born <= :high
        UNION SELECT place FROM version WHERE died > :low AND died <= :high
        UNION SELECT version.place FROM node_version JOIN version ON version.node != 0 AND version.node = node_version.node
        WHERE node_version.born > :low AND node_version.born <= :high
        UNION SELECT version.place FROM node_version JOIN version ON version.node != 0 AND version.node = node_version.node
        WHERE node_version.died > :low AND node_version.died <= :high
    ) AS touched
    JOIN place ON place.id = touched.place
    LEFT JOIN version AS first ON first.id = (
        SELECT id FROM version WHERE place = touched.place AND born <= :one ORDER BY born DESC LIMIT 1
    )
    LEFT JOIN version AS second ON second.id = (
        SELECT id FROM version WHERE place = touched.place AND born <= :other ORDER BY born DESC LIMIT 1
    )
    LEFT JOIN node_version AS first_node ON first.node != 0 AND first_node.node = first.node
        AND first_node.born <= :one AND (first_node.died IS NULL OR first_node.died > :one)
    LEFT JOIN node_version AS second_node ON second.node != 0 AND second_node.node = second.node
        AND second_node.born <= :other AND (second_node.died IS NULL OR second_node.died > :other)
    WHERE NOT (
        first.id IS NOT NULL AND second.id IS NOT NULL
        AND (first.died IS NULL OR first.died > :one) AND (second.died IS NULL OR second.died > :other)
        AND first.mode = second.mode AND first.mtime = second.mtime AND first.size = second.size
        AND first.content IS second.content AND first.node = 0 AND second.node = 0
    )
"""  # noqa: S608


class Places:
    """Reads through one connection. Holds no state between calls."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def find_child(self, parent: int, name: bytes) -> int | None:
        row = self._db.execute("SELECT id FROM place WHERE parent = ? AND name = ?", (parent, name)).fetchone()
        return row[0] if row else None

    def find_parent(self, place: int) -> int:
        """The folder that has this place in it; 0 for a persistent folder itself."""
        row = self._db.execute("SELECT parent FROM place WHERE id = ?", (place,)).fetchone()
        return row[0] if row else 0

    def find(self, path: tuple[bytes, ...]) -> int | None:
        place: int | None = 0
        for name in path:
            if place is None:
                return None
            place = self.find_child(place, name)
        return place

    def path(self, place: int) -> tuple[bytes, ...]:
        return PlacePaths(self._db).get_path(place)

    def begin_paths(self) -> "PlacePaths":
        """For the paths of many places."""
        return PlacePaths(self._db)

    def live(self, place: int) -> PathVersion | None:
        row = self._db.execute(
            f"SELECT {_LIVE_COLUMNS} FROM version {_LIVE_NODE} WHERE place = ? AND {LIVE}",  # noqa: S608
            (place,),
        ).fetchone()
        return PathVersion._make(row) if row else None

    def live_children(self, place: int) -> list[PathVersion]:
        rows = self._db.execute(
            f"SELECT {_LIVE_COLUMNS} FROM place JOIN version ON version.place = place.id AND {LIVE} {_LIVE_NODE} WHERE place.parent = ?",  # noqa: S608
            (place,),
        )
        return [PathVersion._make(row) for row in rows]

    def inside(self, place: int) -> tuple[dict[bytes, PathVersion], dict[bytes, int]]:
        """The names in a folder that exist now, and those that existed before."""
        rows = self._db.execute(
            f"SELECT place.id, place.name, {_LIVE_COLUMNS} FROM place LEFT JOIN version ON version.place = place.id AND {LIVE} {_LIVE_NODE} WHERE place.parent = ?",  # noqa: S608
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

    def find_names(self, place: int, names: Sequence[bytes]) -> dict[bytes, tuple[int, PathVersion | None]]:
        """The places of these names in a folder, with their live versions. Names that were never there are left out."""
        found: dict[bytes, tuple[int, PathVersion | None]] = {}
        for start in range(0, len(names), _NAMES_PER_QUERY):
            some = names[start : start + _NAMES_PER_QUERY]
            marks = ",".join("?" * len(some))
            rows = self._db.execute(
                f"SELECT place.id, place.name, {_LIVE_COLUMNS} FROM place LEFT JOIN version ON version.place = place.id AND {LIVE} {_LIVE_NODE} WHERE place.parent = ? AND place.name IN ({marks})",  # noqa: S608
                (place, *some),
            )
            for row in rows:
                found[row[1]] = (row[0], None if row[2] is None else PathVersion._make(row[2:]))
        return found

    def at(self, place: int, entry: int) -> PathVersion | None:
        """The version of a place in the state of an entry."""
        row = self._db.execute(
            f"""SELECT {_LIVE_COLUMNS} FROM version LEFT JOIN node_version AS node ON version.node != 0
            AND node.node = version.node AND node.born <= :entry AND (node.died IS NULL OR node.died > :entry)
            WHERE place = :place AND version.born <= :entry ORDER BY version.born DESC LIMIT 1""",  # noqa: S608
            {"place": place, "entry": entry},
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
        paths = PlacePaths(self._db)
        for row in rows:
            first = _alive(row[3 : 3 + _WIDTH], one)
            second = _alive(row[3 + _WIDTH :], other)
            if first is second or (first is not None and second is not None and first.is_same_as(second)):
                continue
            yield row[0], (*paths.get_path(row[1]), row[2]), first, second

    def list_changes(self, old: int, new: int) -> list[PathChange]:
        """The differences between two entries, in path order and in either direction."""
        found: list[PathChange] = []
        for _, path, before, after in self.compare(old, new):
            word: ChangeWord = "added" if before is None else "removed" if after is None else "changed"
            found.append(PathChange(b"/".join(path), word, before, after))
        return sort_in_slices(found, lambda change: change.path)

    def list_live_names(self, node: int, limit: int = -1) -> list[int]:
        """The places of a file with several names, where it is now."""
        rows = self._db.execute(
            "SELECT place FROM version WHERE node != 0 AND node = ? AND died IS NULL LIMIT ?", (node, limit)
        )
        return [row[0] for row in rows]

    def list_single_names(self, ino: int) -> list[int]:
        """The places that had this inode when it had one name."""
        rows = self._db.execute("SELECT place FROM version WHERE ino = ? AND died IS NULL AND node = 0", (ino,))
        return [row[0] for row in rows]

    def list_flagged(self, limit: int) -> list[int]:
        """Places whose present content is not stored, or may be half written: each is read again by the next snapshot."""
        rows = self._db.execute(
            # Named, since the planner would read every live version by another index.
            """SELECT place FROM version INDEXED BY version_flag WHERE died IS NULL AND flag != 0 AND node = 0
            UNION ALL SELECT (SELECT place FROM version WHERE node != 0 AND node = node_version.node AND died IS NULL LIMIT 1)
            FROM node_version INDEXED BY node_version_flag WHERE died IS NULL AND flag != 0 LIMIT ?""",
            (limit,),
        )
        return [row[0] for row in rows if row[0] is not None]


class PlacePaths:
    """The paths of places and the places of paths, each folder looked up once. For one operation: it forgets nothing."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._paths: dict[int, tuple[bytes, ...]] = {0: ()}
        self._places: dict[tuple[bytes, ...], int] = {(): 0}

    def get_path(self, place: int) -> tuple[bytes, ...]:
        found = self._paths.get(place)
        if found is not None:
            return found
        unknown: list[tuple[int, bytes]] = []
        while found is None:
            row = self._db.execute("SELECT parent, name FROM place WHERE id = ?", (place,)).fetchone()
            if row is None:
                raise FreeholdError(
                    "history.damaged",
                    f"The history has no place {place}",
                    hint="To list all damage: freehold history verify",
                )
            unknown.append((place, row[1]))
            place = row[0]
            found = self._paths.get(place)
        for each, name in reversed(unknown):
            found = self._paths[each] = (*found, name)
        return found

    def find(self, path: tuple[bytes, ...]) -> int | None:
        """None while there is no such place. That is not remembered: the place may be added later."""
        known = len(path)
        while path[:known] not in self._places:
            known -= 1
        place = self._places[path[:known]]
        for depth in range(known + 1, len(path) + 1):
            row = self._db.execute(
                "SELECT id FROM place WHERE parent = ? AND name = ?", (place, path[depth - 1])
            ).fetchone()
            if row is None:
                return None
            place = self._places[path[:depth]] = row[0]
        return place


def _alive(row: tuple[Any, ...], entry: int) -> PathVersion | None:
    """The version of this row, unless it had ended before the entry."""
    return None if row[0] is None or (row[3] is not None and row[3] <= entry) else PathVersion._make(row)
