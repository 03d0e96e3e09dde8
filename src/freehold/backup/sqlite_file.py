"""The pages of an SQLite database at one moment, while others write to it.

A read transaction keeps the state: no checkpoint may write a later page to the database file, and none may begin the
journal anew. A small database is copied by SQLite itself. Of a large one, the file and the committed part of its
write-ahead journal are read, so that nothing has to be written to the disk.
"""

import os
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from freehold.errors import FreeholdError

MAX_COPIED = 8 << 20
_MAX_JOURNAL = 64 << 20
_MAGIC = b"SQLite format 3\0"
_JOURNAL_HEADER, _FRAME_HEADER = 32, 24
_TRIES = 100
_open_handles: dict[tuple[int, int], int] = {}
"""By device and inode. Never closed: closing any handle of a database file would end the locks that this process has on it."""


def is_database(path: Path) -> bool:
    return os.pread(_open_for_ever(path), len(_MAGIC), 0) == _MAGIC


def read_raw_blocks(path: Path, length: int) -> Iterator[bytes]:
    """The blocks of the file as it lies there, of no certain moment. For storing most of them ahead."""
    handle = _open_for_ever(path)
    at = 0
    while block := os.pread(handle, length, at):
        yield block
        at += length


def begin_reading(path: Path, **attached: Path) -> sqlite3.Connection:
    """A connection whose read transaction has begun: it sees one state until it is closed.

    Further databases can be attached by name. Of these, `scratch` may be written.
    """
    connection = sqlite3.connect(
        f"file:{quote(str(path))}?mode=rw", uri=True, isolation_level=None, timeout=10.0, check_same_thread=False
    )
    for name, other in attached.items():
        connection.execute(f"ATTACH ? AS {name}", (str(other),))
    if "scratch" in attached:
        connection.execute("PRAGMA scratch.journal_mode = OFF")
        connection.execute("PRAGMA scratch.synchronous = OFF")
    else:
        connection.execute("PRAGMA query_only = ON")
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM main.sqlite_schema").fetchone()
    return connection


class SqliteFile:
    """Begins the read transaction at construction. Use it in a process of its own; see `_open_handles`."""

    def __init__(self, path: Path, *, max_copied: int = MAX_COPIED) -> None:
        self.path = path
        self.connection = begin_reading(path)
        pages = self.connection.execute("PRAGMA page_count").fetchone()[0]
        self._page = int(self.connection.execute("PRAGMA page_size").fetchone()[0])
        self.size = pages * self._page
        self._frames: dict[int, bytes] = {}
        self._copy: bytes | None = None
        self._file = -1
        mode = self.connection.execute("PRAGMA journal_mode").fetchone()[0]
        if self.size <= max_copied or mode != "wal" or _size_of(path, "-wal") > _MAX_JOURNAL:
            self._copy = self.connection.serialize()
            self.size = len(self._copy)
        else:
            self._file = _open_for_ever(path)
            self._read_journal()

    def close(self) -> None:
        self.connection.close()

    def read_blocks(self, length: int) -> Iterator[bytes]:
        """The whole file in blocks of this many bytes, which is a multiple of the size of a page."""
        for start in range(0, self.size, length):
            end = min(self.size, start + length)
            yield self._copy[start:end] if self._copy is not None else self._read(start, end)

    def _read(self, start: int, end: int) -> bytes:
        block = bytearray(os.pread(self._file, end - start, start).ljust(end - start, b"\0"))
        first = start // self._page
        for page in range(first, end // self._page):
            frame = self._frames.get(page)
            if frame is not None:
                at = (page - first) * self._page
                block[at : at + self._page] = frame
        return bytes(block)

    def _read_journal(self) -> None:
        """The pages of the journal up to its last commit, which may be later than the begin of the transaction."""
        shared = _open_for_ever(self.path.with_name(self.path.name + "-shm"))
        journal = _open_for_ever(self.path.with_name(self.path.name + "-wal"))
        for _ in range(_TRIES):
            head = os.pread(shared, 96, 0)
            if head[:48] != head[48:]:  # another process is writing it
                continue
            count, pages = struct.unpack_from("=II", head, 16)
            salts = head[32:40]
            frames = self._read_frames(journal, count, salts)
            if frames is not None and os.pread(shared, 48, 0)[32:40] == salts:
                self._frames = frames
                if count:
                    self.size = pages * self._page
                return
        raise FreeholdError(
            "backup.unresponsive",
            f"The journal of {self.path} began anew at every attempt to read it",
            hint="The next backup tries again",
        )

    def _read_frames(self, journal: int, count: int, salts: bytes) -> dict[int, bytes] | None:
        frames: dict[int, bytes] = {}
        length = _FRAME_HEADER + self._page
        for number in range(count):
            frame = os.pread(journal, length, _JOURNAL_HEADER + number * length)
            if len(frame) != length or frame[8:16] != salts:
                return None  # a writer began the journal anew
            frames[int.from_bytes(frame[:4], "big") - 1] = frame[_FRAME_HEADER:]
        return frames


def _open_for_ever(path: Path) -> int:
    """One handle for each file, however often it is read."""
    found = path.lstat()
    handle = _open_handles.get((found.st_dev, found.st_ino))
    if handle is None:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        opened = os.fstat(handle)
        handle = _open_handles.setdefault((opened.st_dev, opened.st_ino), handle)
    return handle


def _size_of(path: Path, ending: str) -> int:
    try:
        return path.with_name(path.name + ending).stat().st_size
    except FileNotFoundError:
        return 0
