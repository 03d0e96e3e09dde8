"""Reading everything again: each content against its hash, each reference against its end."""

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from freehold.history.contents import ContentReader, DamagedContent
from freehold.history.states import Places

MAX_PLACES = 100


@dataclass(frozen=True)
class Touched:
    """A path that is damaged in the entries `first` to `last` (None: to this day)."""

    path: bytes
    first: int
    last: int | None


@dataclass(frozen=True)
class Damage:
    content: int | None
    reason: str
    touches: tuple[Touched, ...]


@dataclass(frozen=True)
class Verified:
    contents: int
    bytes_read: int
    damages: tuple[Damage, ...]


def verify(db: sqlite3.Connection, chunks: Path, progress: Callable[[int], None] = lambda done: None) -> Verified:
    """`db` is a connection of its own: nothing waits for this. All damage is found, not only the first."""
    damages = [Damage(None, f"the database says: {row[0]}", ()) for row in _structure(db)]
    reader = ContentReader(db, chunks)
    last = done = total = 0
    while True:
        try:
            ids = [row[0] for row in db.execute("SELECT id FROM content WHERE id > ? ORDER BY id LIMIT 1000", (last,))]
        except sqlite3.DatabaseError as error:
            damages.append(Damage(None, f"the list of contents cannot be read after {last}: {error}", ()))
            break
        if not ids:
            break
        for content in ids:
            last = content
            try:
                total += sum(len(piece) for piece in reader.pieces(content))
            except DamagedContent as error:
                damages.append(Damage(content, error.reason, _touched(db, content)))
            except sqlite3.DatabaseError as error:
                damages.append(Damage(content, str(error), _touched(db, content)))
            done += 1
        progress(done)
    for (content,) in db.execute(
        "SELECT DISTINCT content FROM version WHERE content IS NOT NULL AND content NOT IN (SELECT id FROM content)"
    ).fetchall():
        damages.append(Damage(content, "it is not in the store", _touched(db, content)))
    return Verified(done, total, tuple(damages))


def _structure(db: sqlite3.Connection) -> list[tuple[str]]:
    try:
        return [row for row in db.execute("PRAGMA quick_check(20)").fetchall() if row[0] != "ok"]
    except sqlite3.DatabaseError as error:
        return [(str(error),)]


def _touched(db: sqlite3.Connection, content: int) -> tuple[Touched, ...]:
    places = Places(db)
    try:
        rows = db.execute(
            "SELECT place, born, died FROM version WHERE content = ? LIMIT ?", (content, MAX_PLACES)
        ).fetchall()
        found = []
        for place, born, died in rows:
            last = None if died is None else db.execute("SELECT max(id) FROM entry WHERE id < ?", (died,)).fetchone()[0]
            found.append(Touched(b"/".join(places.path(place)), born, last))
        return tuple(found)
    except sqlite3.DatabaseError:
        return ()
