"""Questions about places and their versions: what lives, what lived at an entry, what differs between two."""

import sqlite3
from collections.abc import Iterator

from freehold.errors import FreeholdError
from freehold.history.model import Change, Version

VERSION_COLUMNS = (
    "version.id, version.place, version.born, version.died, version.mode, version.mtime, version.size, "
    "version.content, version.flag, version.ino, version.ctime, version.nlink"
)
LIVE = "version.died IS NULL"


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

    def touched(self, after: int, until: int) -> list[int]:
        """Places whose state may differ between two entries; costs what changed between them, not what exists."""
        rows = self._db.execute(
            "SELECT place FROM version WHERE born > ? AND born <= ? UNION SELECT place FROM version WHERE died > ? AND died <= ?",
            (after, until, after, until),
        )
        return [row[0] for row in rows]

    def changes(self, old: int, new: int) -> list[Change]:
        """What differs between the states of two entries, in path order; works in both directions."""
        low, high = min(old, new), max(old, new)
        found: list[Change] = []
        for place in self.touched(low, high):
            before, after = self.at(place, old), self.at(place, new)
            if before is None and after is None:
                continue
            if before is not None and after is not None and before.same_as(after):
                continue
            word = "added" if before is None else "removed" if after is None else "changed"
            found.append(Change(b"/".join(self.path(place)), word, before, after))  # type: ignore[arg-type]
        found.sort(key=lambda change: change.path)
        return found

    def alive_with_inode(self, ino: int) -> list[Version]:
        rows = self._db.execute(f"SELECT {VERSION_COLUMNS} FROM version WHERE {LIVE} AND ino = ?", (ino,))  # noqa: S608
        return [Version._make(row) for row in rows]
