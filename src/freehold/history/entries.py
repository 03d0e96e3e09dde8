"""The table of entries. All its SQL is here and in `garbage_collection`."""

import json
import sqlite3
from dataclasses import asdict
from typing import Any

from freehold.errors import FreeholdError
from freehold.history.model import (
    Author,
    EntryKind,
    EntryRecord,
    HistoryNotice,
    InterruptedRestore,
    RevertArguments,
    SessionTurn,
)

_COLUMNS = "id, at, kind, who, why, added, changed, removed, lines_added, lines_removed, good, equals, notes"


def _entry(row: tuple[Any, ...]) -> EntryRecord:
    (entry, at, kind, who, why, added, changed, removed, lines_added, lines_removed, good, equals, notes) = row
    return EntryRecord(
        id=entry,
        at=at,
        kind=kind,
        who=Author(**json.loads(who)),
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


def _author_text(who: Author) -> str:
    return json.dumps({key: value for key, value in asdict(who).items() if value is not None})


def _arguments_text(revert: RevertArguments) -> str:
    choose = [[path.hex(), side] for path, side in revert.choose]
    return json.dumps(
        {"entry": revert.entry, "since": revert.since, "of": revert.of, "choose": choose, "set": revert.change_set}
    )


def _read_arguments(text: str) -> RevertArguments:
    found = json.loads(text)
    choose = tuple((bytes.fromhex(path), side) for path, side in found["choose"])
    of = SessionTurn(*found["of"]) if found["of"] else None
    return RevertArguments(found["entry"], found["since"], of, choose, found.get("set"))


class EntryLog:
    """Reads entries through one connection. Incomplete entries are not visible."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def get(self, entry: int) -> EntryRecord:
        row = self._db.execute(f"SELECT {_COLUMNS} FROM entry WHERE id = ? AND complete = 1", (entry,)).fetchone()  # noqa: S608
        if row is None and 0 < entry < self.newest():
            raise FreeholdError(
                "history.no-such-entry",
                f"Entry {entry} is no longer kept",
                hint="Of old states only some are kept. freehold log lists the entries",
            )
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
        """The entry just before this one."""
        row = self._db.execute("SELECT max(id) FROM entry WHERE complete = 1 AND id < ?", (entry,)).fetchone()
        return None if row[0] is None else int(row[0])

    def last_good(self) -> int | None:
        """The newest entry that is marked as known good."""
        row = self._db.execute("SELECT max(id) FROM entry WHERE complete = 1 AND good = 1").fetchone()
        return None if row[0] is None else int(row[0])

    def page(self, limit: int, before: int | None) -> list[EntryRecord]:
        """Newest first."""
        rows = self._db.execute(
            f"SELECT {_COLUMNS} FROM entry WHERE complete = 1 AND id < ? ORDER BY id DESC LIMIT ?",  # noqa: S608
            (before if before is not None else 1 << 62, limit),
        )
        return [_entry(row) for row in rows]

    def between(self, after: int, last: int) -> list[EntryRecord]:
        """The entries after `after` up to `last`, oldest first."""
        rows = self._db.execute(
            f"SELECT {_COLUMNS} FROM entry WHERE complete = 1 AND id > ? AND id <= ? ORDER BY id",  # noqa: S608
            (after, last),
        )
        return [_entry(row) for row in rows]

    def find_touching(self, place: int, limit: int, before: int | None) -> list[EntryRecord]:
        """Entries that changed a place or anything below it, newest first."""
        rows = self._db.execute(
            f"""WITH RECURSIVE inside(id) AS (SELECT ? UNION ALL SELECT place.id FROM place JOIN inside ON place.parent = inside.id)
            SELECT {_COLUMNS} FROM entry WHERE complete = 1 AND id < ? AND id IN (
                SELECT (SELECT min(e.id) FROM entry e WHERE e.complete = 1 AND e.id >= version.born) FROM version JOIN inside ON version.place = inside.id
                UNION SELECT (SELECT min(e.id) FROM entry e WHERE e.complete = 1 AND e.id >= version.died)
                FROM version JOIN inside ON version.place = inside.id WHERE version.died IS NOT NULL
                UNION SELECT (SELECT min(e.id) FROM entry e WHERE e.complete = 1 AND e.id >= node_version.born)
                FROM version JOIN inside ON version.place = inside.id
                JOIN node_version ON version.node != 0 AND node_version.node = version.node
                AND node_version.born >= version.born AND (version.died IS NULL OR node_version.born < version.died)
            ) ORDER BY id DESC LIMIT ?""",  # noqa: S608
            (place, before if before is not None else 1 << 62, limit),
        )
        return [_entry(row) for row in rows]

    def read_redo(self, entry: int) -> tuple[int | None, int | None]:
        """For an undo or redo: the entry that the next redo restores, and the entry with the columns for the redo after it."""
        row = self._db.execute("SELECT redo_to, redo_next FROM entry WHERE id = ?", (entry,)).fetchone()
        return (row[0], row[1]) if row else (None, None)

    def read_intent(self) -> tuple[InterruptedRestore, str] | None:
        """The restore that has not ended, and the token in the names of its temporary files."""
        row = self._db.execute(
            "SELECT kind, began, before, target, paths, who, why, recorded, revert, token FROM intent"
        ).fetchone()
        if row is None:
            return None
        kind, began, before, target, names, who, why, recorded, revert, token = row
        paths = tuple(path for path in bytes(names).split(b"\0") if path)
        author = Author(**json.loads(who))
        arguments = _read_arguments(revert) if revert else None
        return InterruptedRestore(kind, began, before, target, paths, author, why, recorded, arguments), token

    def notices(self) -> list[HistoryNotice]:
        return [
            HistoryNotice(*row) for row in self._db.execute("SELECT code, message, hint, at FROM notice ORDER BY at")
        ]


class EntryWriter(EntryLog):
    """Writes entries in the caller's transaction."""

    def begin(self, entry: int, at: float, kind: EntryKind, who: Author, why: str) -> None:
        self._db.execute(
            "INSERT INTO entry (id, at, kind, who, why, equals) VALUES (?, ?, ?, ?, ?, ?)",
            (
                entry,
                at,
                kind,
                _author_text(who),
                why,
                entry,
            ),
        )

    def complete(self, entry: int, counts: tuple[int, int, int], notes: list[str]) -> None:
        self._db.execute(
            "UPDATE entry SET complete = 1, added = ?, changed = ?, removed = ?, notes = ? WHERE id = ?",
            (*counts, json.dumps(notes), entry),
        )

    def delete(self, entry: int) -> None:
        self._db.execute("DELETE FROM entry WHERE id = ?", (entry,))

    def set_equal_state(self, entry: int, equals: int, redo_to: int | None, redo_next: int | None) -> None:
        """For an undo or redo: the entry with the same state, and the two columns for the next redo."""
        self._db.execute(
            "UPDATE entry SET equals = ?, redo_to = ?, redo_next = ? WHERE id = ?", (equals, redo_to, redo_next, entry)
        )

    def set_lines(self, entry: int, added: int, removed: int) -> None:
        self._db.execute("UPDATE entry SET lines_added = ?, lines_removed = ? WHERE id = ?", (added, removed, entry))

    def set_good(self, entry: int, good: bool) -> None:
        self._db.execute("UPDATE entry SET good = ? WHERE id = ?", (int(good), entry))

    def add_intent(self, intent: InterruptedRestore, token: str) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO intent VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                intent.kind, intent.began, intent.before, intent.target, token, b"\0".join(intent.paths),
                _author_text(intent.who), intent.why, intent.recorded,
                _arguments_text(intent.revert) if intent.revert else None,
            ),
        )  # fmt: skip

    def set_interrupted_state(self, entry: int) -> None:
        """The entry that has the state in which the interrupted restore was left."""
        self._db.execute("UPDATE intent SET recorded = ?", (entry,))

    def remove_intent(self) -> None:
        self._db.execute("DELETE FROM intent")

    def add_notice(self, notice: HistoryNotice) -> None:
        self._db.execute(
            "INSERT OR REPLACE INTO notice VALUES (?, ?, ?, ?)", (notice.code, notice.at, notice.message, notice.hint)
        )

    def remove_notice(self, code: str) -> None:
        self._db.execute("DELETE FROM notice WHERE code = ?", (code,))
