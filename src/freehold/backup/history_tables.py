"""History in a backup: the contents by their hash, and the tables without the contents.

A table becomes a small SQLite database of its own, in the order of its rows and without indexes. So a new row changes
the end of one file, and what was stored before is not stored again.
"""

import sqlite3
from collections.abc import Container, Iterator
from pathlib import Path

import zstandard

from freehold.backup.local_index import LocalIndex
from freehold.backup.sqlite_file import begin_reading
from freehold.errors import FreeholdError
from freehold.history.contents import CHUNKED, ContentReader

TABLE_FOLDER = "history/tables"
_SKIPPED = ("intent", "working_copy")
"""A restore and runs that are under way now. On another machine they are not."""
SCHEMA_TABLE = "schema"
_SCHEMA_SQL = "CREATE TABLE schema (kind TEXT, name TEXT, sql TEXT)"
_SCHEMA_ROWS = "SELECT type, name, sql FROM main.sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY type = 'index', name"
_CONTENT = "SELECT id, hash, size, form, NULL FROM main.content ORDER BY id"


def iterate_contents_ahead(history: Path, index: LocalIndex) -> Iterator[tuple[bytes, bytes]]:
    """As `HistoryCapture.iterate_new_contents`, without keeping a state: a first backup may take hours to send them.

    What is dropped meanwhile is left out.
    """
    db = sqlite3.connect(history / "history.db", isolation_level=None, timeout=10.0)
    try:
        db.execute("PRAGMA query_only = ON")
        db.execute("ATTACH ? AS known", (str(index.path),))
        yield from _iterate_new(db, history / "chunks", (), dropped=True)
    finally:
        db.close()


def _iterate_new(
    db: sqlite3.Connection, chunks: Path, waiting: Container[bytes], *, dropped: bool = False
) -> Iterator[tuple[bytes, bytes]]:
    """With `dropped`, a content or chunk that is not there any more is no damage."""
    decompress = zstandard.ZstdDecompressor().decompress
    reader = ContentReader(db, chunks)
    for number in _find_new(db, "content", waiting):
        row = db.execute("SELECT hash, size, form, data FROM main.content WHERE id = ?", (number,)).fetchone()
        if row is not None and row[2] != CHUNKED:
            yield bytes(row[0]), decompress(row[3], max_output_size=row[1]) if row[2] else bytes(row[3])
    for number in _find_new(db, "chunk", waiting):
        row = db.execute("SELECT hash, size, stored FROM main.chunk WHERE id = ?", (number,)).fetchone()
        try:
            content = reader.read_chunk(*row) if row is not None else None
        except ValueError as error:
            if dropped:
                continue
            raise FreeholdError(
                "history.damaged-content",
                f"The history is damaged: {error}",
                hint="To list the affected entries and paths: freehold history verify",
            ) from error
        if content is not None:
            yield bytes(row[0]), content


def _find_new(db: sqlite3.Connection, table: str, waiting: Container[bytes]) -> list[int]:
    """By the index of the hashes alone: the contents are not read for it."""
    found = db.execute(f"SELECT id, hash FROM main.{table} WHERE hash NOT IN (SELECT id FROM known.blob)")  # noqa: S608
    return sorted(number for number, digest in found if digest not in waiting)


class HistoryCapture:
    """The history at one moment. Reading it blocks nobody. `folder` is for files of its own while it is open."""

    def __init__(self, history: Path, index: LocalIndex, folder: Path) -> None:
        self._chunks = history / "chunks"
        self._folder = folder
        self._copy = folder / "tables"
        self.db = begin_reading(history / "history.db", known=index.path, scratch=self._copy)
        self.entry: int | None = self.db.execute("SELECT max(id) FROM main.entry WHERE complete = 1").fetchone()[0]
        counted = "SELECT count(*), coalesce(sum(size), 0) FROM main.version WHERE died IS NULL"
        self.files, self.bytes = self.db.execute(counted).fetchone()

    def close(self) -> None:
        self.db.close()

    def iterate_new_contents(self, waiting: Container[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """Hash and bytes of each content and chunk that the repository does not have, and that is not on its way there.

        Nothing else is read.
        """
        return _iterate_new(self.db, self._chunks, waiting)

    def list_unstored(self) -> Iterator[bytes]:
        """The paths of files that history lists without their content."""
        names: dict[int, tuple[int, bytes]] = {}
        rows = self.db.execute(
            """SELECT place.id FROM main.version AS version JOIN main.place AS place ON place.id = version.place
            LEFT JOIN main.node_version AS node ON version.node != 0 AND node.node = version.node AND node.died IS NULL
            WHERE version.died IS NULL AND CASE WHEN node.id IS NULL THEN version.flag ELSE node.flag END != 0
            AND CASE WHEN node.id IS NULL THEN version.content ELSE node.content END IS NULL"""
        ).fetchall()
        for (place,) in rows:
            parts = []
            while place:
                if place not in names:
                    names[place] = self.db.execute(
                        "SELECT parent, name FROM main.place WHERE id = ?", (place,)
                    ).fetchone()
                parent, name = names[place]
                parts.append(bytes(name))
                place = parent
            yield b"/".join(reversed(parts))

    def dump_tables(self) -> Iterator[tuple[str, Path]]:
        """The name and the file of each table. A file is there until the next one is asked for. Call it last."""
        tables = self.db.execute(
            "SELECT name, sql FROM main.sqlite_schema WHERE type = 'table' ORDER BY name"
        ).fetchall()
        version = self.db.execute("PRAGMA main.user_version").fetchone()[0]
        dumps = {name: sql for name, sql in tables if not name.startswith("sqlite_") and name not in _SKIPPED}
        for name, sql in dumps.items():
            query = _CONTENT if name == "content" else f"SELECT * FROM main.{name} ORDER BY 1"  # noqa: S608
            self._copy_table(name, sql, query)
        self._copy_table(SCHEMA_TABLE, _SCHEMA_SQL, _SCHEMA_ROWS)
        self.db.execute("COMMIT")
        for name, sql in (dumps | {SCHEMA_TABLE: _SCHEMA_SQL}).items():
            path = self._folder / f"{name}.sqlite"
            path.unlink(missing_ok=True)
            self._write_table(name, sql, version, path)
            yield name, path
            path.unlink()

    def _copy_table(self, name: str, sql: str, query: str) -> None:
        """Of the one moment. All are in one file, in which they would lie differently each time."""
        self.db.execute(sql.replace("CREATE TABLE ", "CREATE TABLE scratch.", 1))
        self.db.execute(f"INSERT INTO scratch.{name} {query}")

    def _write_table(self, name: str, sql: str, version: int, path: Path) -> None:
        copy = sqlite3.connect(path, isolation_level=None)
        try:
            copy.execute("PRAGMA journal_mode = OFF")
            copy.execute("PRAGMA synchronous = OFF")
            copy.execute("PRAGMA page_size = 4096")
            copy.execute(f"PRAGMA user_version = {version:d}")
            copy.execute("ATTACH ? AS scratch", (str(self._copy),))
            copy.execute(sql)
            copy.execute(f"INSERT INTO main.{name} SELECT * FROM scratch.{name} ORDER BY 1")  # noqa: S608
        finally:
            copy.close()
