"""The history of a home from its tables and contents, and the files of its newest entry."""

import errno
import os
import re
import shutil
import sqlite3
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import zstandard

from freehold.backup.file_list import can_be_reached
from freehold.backup.history_tables import SCHEMA_TABLE
from freehold.backup.snapshot import BackupSnapshot
from freehold.errors import FreeholdError
from freehold.history.contents import CHUNKED, RAW, ZSTD

BlobUses = dict[bytes, list[Callable[[bytes], None]]]
"""What to do with each blob when it is read."""
_MIN_COMPRESSED_BYTES = 160
_BATCH = 256
_TABLE_NAME = re.compile(r"[a-z_]{1,64}")

_LIVE = """
    SELECT version.place, place.parent, place.name, version.node,
      CASE WHEN node.id IS NULL THEN version.mode ELSE node.mode END,
      CASE WHEN node.id IS NULL THEN version.mtime ELSE node.mtime END,
      CASE WHEN node.id IS NULL THEN version.size ELSE node.size END,
      CASE WHEN node.id IS NULL THEN version.content ELSE node.content END
    FROM version JOIN place ON place.id = version.place
    LEFT JOIN node_version AS node ON version.node != 0 AND node.node = version.node AND node.died IS NULL
    WHERE version.died IS NULL
"""


@dataclass(frozen=True)
class LivePath:
    """One path of the newest entry."""

    path: Path
    root: str
    node: int
    mode: int
    mtime: int
    size: int
    content: int | None


class HistoryRebuild:
    """First `add_table` for each table, then `collect_uses`, then every blob, then `finish`."""

    def __init__(self, folder: Path, home: Path, snapshot: BackupSnapshot) -> None:
        self._folder = folder
        self._home = home
        self._snapshot = snapshot
        self._chunks = folder / "chunks"
        self._scratch = folder / "tables"
        self._scratch.mkdir(parents=True, mode=0o700)
        self._chunks.mkdir(mode=0o700)
        folder.chmod(0o700)
        self._db = sqlite3.connect(folder / "history.db", isolation_level=None)
        (folder / "history.db").chmod(0o600)
        self._zstd = zstandard.ZstdCompressor(level=1, write_checksum=False)
        self._waiting: list[tuple[int, bytes, int, bytes]] = []
        self.live: list[LivePath] = []
        """The paths of the newest entry. Those above come first."""
        self._targets: dict[Path, bytes] = {}
        self._linked: dict[int, Path] = {}
        self._indexes: list[str] = []
        self.files = 0
        self.too_long = 0
        """Paths that cannot be written here. History has them: its own restore works folder by folder."""

    def add_table(self, name: str, content: bytes) -> None:
        if not name.isidentifier():
            raise FreeholdError("backup.bad-listing", f"{name[:100]!r} is no table of history", kind="damaged")
        (self._scratch / name).write_bytes(content)

    def collect_uses(self, uses: BlobUses) -> None:
        """Make the folders and the rows without contents, and say where each blob is needed."""
        self._make_tables()
        self._read_live()
        contents = {
            number: (bytes(digest), size, form)
            for number, digest, size, form in self._db.execute("SELECT id, hash, size, form FROM stored.content")
        }
        chunks = {
            number: (bytes(digest), size)
            for number, digest, size in self._db.execute("SELECT id, hash, size FROM chunk")
        }
        for number, (digest, size, form) in contents.items():
            if form == CHUNKED:
                self._db.execute("INSERT INTO content VALUES (?, ?, ?, ?, NULL)", (number, digest, size, form))
            else:
                uses[digest].append(partial(self._add_content, number, digest))
        for number, (digest, _) in chunks.items():
            uses[digest].append(partial(self._add_chunk, number, digest))
        for live in self.live:
            if stat.S_ISDIR(live.mode):
                live.path.mkdir(mode=0o700, exist_ok=True)
            elif live.content is not None:
                self._collect_content(live, contents[live.content], chunks, uses)

    def _collect_content(
        self,
        live: LivePath,
        content: tuple[bytes, int, int],
        chunks: dict[int, tuple[bytes, int]],
        uses: BlobUses,
    ) -> None:
        digest, _, form = content
        if stat.S_ISLNK(live.mode):
            uses[digest].append(partial(self._targets.__setitem__, live.path))
            return
        if live.node and live.node in self._linked:
            return
        self._linked[live.node] = live.path
        if form != CHUNKED:
            uses[digest].append(partial(write_new, live.path))
            return
        live.path.touch(0o600)
        at = 0
        for (chunk,) in self._db.execute(
            "SELECT chunk FROM piece WHERE content = ? ORDER BY position", (live.content,)
        ):
            if chunk < 0:  # a hole
                at -= chunk
                continue
            piece, length = chunks[chunk]
            uses[piece].append(partial(write_at, live.path, at))
            at += length

    def _make_tables(self) -> None:
        db = self._db
        db.execute("PRAGMA auto_vacuum = INCREMENTAL")
        db.execute("PRAGMA journal_mode = OFF")
        db.execute("PRAGMA synchronous = OFF")
        db.execute("ATTACH ? AS stored", (str(self._scratch / SCHEMA_TABLE),))
        schema = db.execute("SELECT kind, name, sql FROM stored.schema").fetchall()
        version = db.execute("PRAGMA stored.user_version").fetchone()[0]
        db.execute("DETACH stored")
        db.execute(f"PRAGMA user_version = {version:d}")
        for kind, name, sql in schema:
            _check_statement(kind, name, sql)
            if kind != "table":
                self._indexes.append(sql)
                continue
            db.execute(sql)
            if name != "content" and (self._scratch / name).exists():
                db.execute("ATTACH ? AS stored", (str(self._scratch / name),))
                db.execute(f"INSERT INTO main.{name} SELECT * FROM stored.{name}")  # noqa: S608 - a name of our own schema
                db.execute("DETACH stored")
        db.execute("ATTACH ? AS stored", (str(self._scratch / "content"),))
        db.execute("CREATE INDEX main.live_node ON node_version (node) WHERE died IS NULL")
        db.execute("BEGIN")

    def _read_live(self) -> None:
        """Folders before what is in them."""
        rows = {row[0]: row[1:] for row in self._db.execute(_LIVE)}
        paths: dict[int, tuple[Path, str] | None] = {0: None}
        for place, (_, _, node, mode, mtime, size, content) in rows.items():
            chain = []  # not by recursion: agents decide how deep folders are
            above = place
            while above not in paths:
                chain.append(above)
                paths[above] = None  # also ends a chain that leads back to itself
                above = rows[above][0] if above in rows else 0
            for one in reversed(chain):
                paths[one] = self._locate(rows[one], paths[rows[one][0]]) if one in rows else None
            found = paths[place]
            if found is not None and not can_be_reached(found[0]):
                self.too_long += 1
            elif found is not None:
                self.live.append(LivePath(found[0], found[1], node, mode, mtime, size, content))
        self.live.sort(key=lambda live: len(live.path.parts))
        self.files = len(self.live)

    def _locate(self, row: Sequence[Any], above: tuple[Path, str] | None) -> tuple[Path, str] | None:
        """The path of a row, and the folder of the home that it is in. None if that is no folder of this backup."""
        parent, name = row[0], bytes(row[1])
        if name in (b"", b".", b"..") or b"/" in name or b"\0" in name:
            raise FreeholdError("backup.bad-listing", f"{name[:100]!r} is no name of a file", kind="damaged")
        text = os.fsdecode(name)
        if parent == 0:
            return (self._home / text, text) if text in self._snapshot.folders else None
        return None if above is None else (above[0] / text, above[1])

    def _add_content(self, number: int, digest: bytes, content: bytes) -> None:
        self._waiting.append((number, digest, len(content), content))
        if len(self._waiting) >= _BATCH:
            self._store_contents()

    def _store_contents(self) -> None:
        """In the same form as history itself stores them."""
        rows = []
        for number, digest, size, content in self._waiting:
            small = self._zstd.compress(content) if size > _MIN_COMPRESSED_BYTES else content
            rows.append(
                (number, digest, size, ZSTD, small) if len(small) < size * 0.9 else (number, digest, size, RAW, content)
            )
        self._db.executemany("INSERT INTO content VALUES (?, ?, ?, ?, ?)", rows)
        self._waiting.clear()

    def _add_chunk(self, number: int, digest: bytes, content: bytes) -> None:
        small = self._zstd.compress(content)
        kept = small if len(small) < len(content) * 0.95 else content
        name = digest.hex()
        path = self._chunks / name[:2] / name[2:]
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_new(path, kept)
        path.chmod(0o600)
        self._db.execute("UPDATE chunk SET stored = ? WHERE id = ?", (len(kept), number))

    def finish(self) -> None:
        """Links, times, modes and owners; then the indexes of the database."""
        for live in self.live:
            if stat.S_ISLNK(live.mode):
                live.path.symlink_to(os.fsdecode(self._targets[live.path]))
            elif live.node and live.content is not None and self._linked[live.node] != live.path:
                _link(self._linked[live.node], live.path)
        for live in reversed(self.live):
            self._finish_path(live)
        self._store_contents()
        self._db.execute("COMMIT")
        self._db.execute("DETACH stored")
        self._db.execute("DROP INDEX live_node")
        for sql in self._indexes:
            self._db.execute(sql)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.close()
        for path in self._scratch.iterdir():
            path.unlink()
        self._scratch.rmdir()

    def _finish_path(self, live: LivePath) -> None:
        if not os.path.lexists(live.path):
            return  # history could not store it; it is in the list of files
        if stat.S_ISREG(live.mode) and live.path.stat().st_size != live.size:
            os.truncate(live.path, live.size)  # it ends with a hole
        owner = self._snapshot.folders[live.root]
        if os.geteuid() == 0:
            os.chown(live.path, owner.uid, owner.gid, follow_symlinks=False)
        if not stat.S_ISLNK(live.mode):
            live.path.chmod(stat.S_IMODE(live.mode))
        os.utime(live.path, ns=(live.mtime, live.mtime), follow_symlinks=False)


def _check_statement(kind: object, name: object, sql: object) -> None:
    """The list of tables makes tables and indexes, and no statement that could reach another file."""
    wanted = {"table": ("CREATE TABLE ",), "index": ("CREATE INDEX ", "CREATE UNIQUE INDEX ")}.get(str(kind), ())
    if not (isinstance(name, str) and _TABLE_NAME.fullmatch(name) and isinstance(sql, str) and sql.startswith(wanted)):
        raise FreeholdError("backup.bad-listing", f"{str(name)[:100]!r} is no table of history", kind="damaged")


def _link(existing: Path, path: Path) -> None:
    """A file of its own where the folders are on two volumes, as they are in containers."""
    try:
        path.hardlink_to(existing)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        shutil.copyfile(existing, path)


def write_new(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        _write_all(handle, content, 0)
    finally:
        os.close(handle)


def write_at(path: Path, offset: int, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        _write_all(handle, content, offset)
    finally:
        os.close(handle)


def _write_all(handle: int, content: bytes, offset: int) -> None:
    done = 0
    while done < len(content):
        done += os.pwrite(handle, memoryview(content)[done:], offset + done)
