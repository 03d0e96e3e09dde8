"""Verifies the store: reads each content and compares it with its hash, and checks each reference."""

import sqlite3
from dataclasses import dataclass
from pathlib import Path

from freehold.history.contents import ContentReader, DamagedContent
from freehold.history.states import Places

MAX_PLACES = 100


@dataclass(frozen=True)
class AffectedPath:
    """A path that is damaged in the entries `first` to `last`; None means up to now."""

    path: bytes
    first: int
    last: int | None


@dataclass(frozen=True)
class ContentDamage:
    content: int | None
    reason: str
    touches: tuple[AffectedPath, ...]


@dataclass(frozen=True)
class VerificationResult:
    contents: int
    bytes_read: int
    damages: tuple[ContentDamage, ...]


def verify_store(db: sqlite3.Connection, chunks: Path) -> VerificationResult:
    """`db` is used only here, so nothing waits for it. Reports all damage, not only the first."""
    damages = [ContentDamage(None, f"the database reports: {row[0]}", ()) for row in _check_structure(db)]
    reader = ContentReader(db, chunks)
    last = done = total = 0
    while True:
        try:
            ids = [row[0] for row in db.execute("SELECT id FROM content WHERE id > ? ORDER BY id LIMIT 1000", (last,))]
        except sqlite3.DatabaseError as error:
            damages.append(ContentDamage(None, f"the list of contents cannot be read after {last}: {error}", ()))
            break
        if not ids:
            break
        for content in ids:
            last = content
            try:
                total += sum(len(piece) for piece in reader.pieces(content) if not isinstance(piece, int))
            except DamagedContent as error:
                damages.append(ContentDamage(content, error.reason, _find_affected(db, content)))
            except sqlite3.DatabaseError as error:
                damages.append(ContentDamage(content, str(error), _find_affected(db, content)))
            done += 1
    for (content,) in db.execute(
        """SELECT content FROM version WHERE content IS NOT NULL AND content NOT IN (SELECT id FROM content)
        UNION SELECT content FROM node_version WHERE content IS NOT NULL AND content NOT IN (SELECT id FROM content)"""
    ).fetchall():
        damages.append(ContentDamage(content, "it is not in the store", _find_affected(db, content)))
    return VerificationResult(done, total, tuple(damages))


def _check_structure(db: sqlite3.Connection) -> list[tuple[str]]:
    try:
        return [row for row in db.execute("PRAGMA quick_check(20)").fetchall() if row[0] != "ok"]
    except sqlite3.DatabaseError as error:
        return [(str(error),)]


def _find_affected(db: sqlite3.Connection, content: int) -> tuple[AffectedPath, ...]:
    places = Places(db)
    try:
        rows = db.execute(
            """SELECT place, born, died FROM version WHERE content = :content AND node = 0
            UNION ALL SELECT version.place, node_version.born, node_version.died FROM node_version
            JOIN version ON version.node != 0 AND version.node = node_version.node WHERE node_version.content = :content LIMIT :limit""",
            {"content": content, "limit": MAX_PLACES},
        ).fetchall()
        found = []
        for place, born, died in rows:
            last = None if died is None else db.execute("SELECT max(id) FROM entry WHERE id < ?", (died,)).fetchone()[0]
            found.append(AffectedPath(b"/".join(places.path(place)), born, last))
        return tuple(found)
    except sqlite3.DatabaseError:
        return ()
