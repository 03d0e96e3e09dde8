"""The log: one row an entry, read and written here only."""

import json
import sqlite3
from dataclasses import asdict
from typing import Any

from freehold.errors import FreeholdError
from freehold.history.model import Entry, Interrupted, Kind, Notice, Who

_COLUMNS = "id, at, kind, who, why, added, changed, removed, lines_added, lines_removed, good, equals, notes"


def _entry(row: tuple[Any, ...]) -> Entry:
    (entry, at, kind, who, why, added, changed, removed, lines_added, lines_removed, good, equals, notes) = row
    return Entry(
        id=entry,
        at=at,
        kind=kind,
        who=Who(**json.loads(who)),
        why=why,
        added=added,
        changed=changed,
        removed=removed,
        lines_added=lines_added,
        lines_removed=lines_removed,
        good=bool(good),
        equals=equals,
        notes=tuple(json.loads(notes)),
    )


class EntryLog:
    """Reads through one connection. Only complete entries exist for a reader."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def get(self, entry: int) -> Entry:
        row = self._db.execute(f"SELECT {_COLUMNS} FROM entry WHERE id = ? AND complete = 1", (entry,)).fetchone()  # noqa: S608
        if row is None:
            raise FreeholdError(
                "history.no-such-entry",
                f"There is no entry {entry} in the history",
                hint="freehold log lists the entries",
            )
        return _entry(row)

    def newest(self) -> int:
        """The id of the newest entry; 0 while there is none."""
        return int(self._db.execute("SELECT coalesce(max(id), 0) FROM entry WHERE complete = 1").fetchone()[0])

    def before(self, entry: int) -> int | None:
        """The entry that came just before, of those still kept."""
        row = self._db.execute("SELECT max(id) FROM entry WHERE complete = 1 AND id < ?", (entry,)).fetchone()
        return None if row[0] is None else int(row[0])

    def last_good(self) -> int | None:
        """The newest entry that was noted as known good."""
        row = self._db.execute("SELECT max(id) FROM entry WHERE complete = 1 AND good = 1").fetchone()
        return None if row[0] is None else int(row[0])

    def page(self, limit: int, before: int | None) -> list[Entry]:
        """Newest first."""
        rows = self._db.execute(
            f"SELECT {_COLUMNS} FROM entry WHERE complete = 1 AND id < ? ORDER BY id DESC LIMIT ?",  # noqa: S608
            (before if before is not None else 1 << 62, limit),
        )
        return [_entry(row) for row in rows]

    def between(self, after: int, last: int) -> list[Entry]:
        """Those after one entry up to another, oldest first."""
        rows = self._db.execute(
            f"SELECT {_COLUMNS} FROM entry WHERE complete = 1 AND id > ? AND id <= ? ORDER BY id",  # noqa: S608
            (after, last),
        )
        return [_entry(row) for row in rows]

    def touching(self, place: int, limit: int, before: int | None) -> list[Entry]:
        """Entries that changed a place or anything below it, newest first."""
        rows = self._db.execute(
            f"""WITH RECURSIVE inside(id) AS (SELECT ? UNION ALL SELECT place.id FROM place JOIN inside ON place.parent = inside.id)
            SELECT {_COLUMNS} FROM entry WHERE complete = 1 AND id < ? AND id IN (
                SELECT (SELECT min(e.id) FROM entry e WHERE e.complete = 1 AND e.id >= version.born) FROM version JOIN inside ON version.place = inside.id
                UNION SELECT (SELECT min(e.id) FROM entry e WHERE e.complete = 1 AND e.id >= version.died)
                FROM version JOIN inside ON version.place = inside.id WHERE version.died IS NOT NULL
            ) ORDER BY id DESC LIMIT ?""",  # noqa: S608
            (place, before if before is not None else 1 << 62, limit),
        )
        return [_entry(row) for row in rows]

    def redo(self, entry: int) -> tuple[int | None, int | None]:
        row = self._db.execute("SELECT redo_to, redo_next FROM entry WHERE id = ?", (entry,)).fetchone()
        return (row[0], row[1]) if row else (None, None)

    def interrupted(self) -> tuple[Interrupted, str] | None:
        """The restore that never ended, and the token in the names of its temporary files."""
        row = self._db.execute("SELECT kind, began, before, target, paths, token FROM intent").fetchone()
        if row is None:
            return None
        paths = tuple(path for path in bytes(row[4]).split(b"\0") if path)
        return Interrupted(row[0], row[1], row[2], row[3], paths), row[5]

    def notices(self) -> list[Notice]:
        return [Notice(*row) for row in self._db.execute("SELECT code, message, hint, at FROM notice ORDER BY at")]


class EntryWriter(EntryLog):
    """Writes in the caller's transaction."""

    def begin(self, entry: int, at: float, kind: Kind, who: Who, why: str) -> None:
        self._db.execute(
            "INSERT INTO entry (id, at, kind, who, why, equals) VALUES (?, ?, ?, ?, ?, ?)",
            (
                entry,
                at,
                kind,
                json.dumps({key: value for key, value in asdict(who).items() if value is not None}),
                why,
                entry,
            ),
        )

    def complete(self, entry: int, counts: tuple[int, int, int], notes: list[str]) -> None:
        self._db.execute(
            "UPDATE entry SET complete = 1, added = ?, changed = ?, removed = ?, notes = ? WHERE id = ?",
            (*counts, json.dumps(notes), entry),
        )

    def forget(self, entry: int) -> None:
        self._db.execute("DELETE FROM entry WHERE id = ?", (entry,))

    def stand_for(self, entry: int, equals: int, redo_to: int | None, redo_next: int | None) -> None:
        """An undo or redo has the state of another entry, and knows the way forward again."""
        self._db.execute(
            "UPDATE entry SET equals = ?, redo_to = ?, redo_next = ? WHERE id = ?", (equals, redo_to, redo_next, entry)
        )

    def set_lines(self, entry: int, added: int, removed: int) -> None:
        self._db.execute("UPDATE entry SET lines_added = ?, lines_removed = ? WHERE id = ?", (added, removed, entry))

    def set_good(self, entry: int, good: bool) -> None:
        self._db.execute("UPDATE entry SET good = ? WHERE id = ?", (int(good), entry))

    def intend(self, intent: Interrupted, token: str) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO intent VALUES (1, ?, ?, ?, ?, ?, ?)",
            (intent.kind, intent.began, intent.before, intent.target, token, b"\0".join(intent.paths)),
        )

    def settled(self) -> None:
        self._db.execute("DELETE FROM intent")

    def tell(self, notice: Notice) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO notice VALUES (?, ?, ?, ?)", (notice.code, notice.at, notice.message, notice.hint)
        )

    def untell(self, code: str) -> None:
        self._db.execute("DELETE FROM notice WHERE code = ?", (code,))
