"""Stores contents by their BLAKE3 hash: small ones in SQLite, large ones as chunk files, compressed where that saves space."""

import ctypes
import os
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import zstandard
from blake3 import blake3

from freehold.errors import FreeholdError
from freehold.history.chunks import MAX_CHUNK_BYTES, find_cut
from freehold.history.database import transaction

MAX_INLINE_BYTES = 64 << 10
RAW, ZSTD, CHUNKED = 0, 1, 2
_MIN_COMPRESSED_BYTES = 160  # below this size the zstd frame costs more than it saves
_MAX_SINGLE_SYNCS = 32
_MIN_PARALLEL_CONTENTS = 64

_libc = ctypes.CDLL(None, use_errno=True)


class DamagedContent(FreeholdError):
    """A stored content whose bytes do not match its hash."""

    def __init__(self, content: int, reason: str) -> None:
        super().__init__(
            "history.damaged-content",
            f"Stored content {content} is damaged: {reason}",
            hint="To list the affected entries and paths: freehold history verify",
        )
        self.content = content
        self.reason = reason


class StoreWriteError(Exception):
    """The store could not be written; the cause is an OSError. Not an OSError itself: that means a file cannot be read."""


class ContentStore:
    """Writes are buffered until `flush` and belong to the caller's transaction. The caller holds the lock."""

    def __init__(self, db: sqlite3.Connection, folder: Path) -> None:
        self._db = db
        self.folder = folder
        self._zstd = zstandard.ZstdCompressor(level=1, write_checksum=False)
        self._compress = self._zstd.compress
        self._pending: list[tuple[int, bytes, int, int, bytes | None]] = []
        self._pending_ids: dict[bytes, int] = {}
        self._unsynced: list[Path] = []
        self._chunk_bytes: int | None = None
        self.pending_bytes = 0
        self.written_bytes = 0
        self.reload()

    def reload(self) -> None:
        """After a rollback: discard the buffer and read the next free id again."""
        self._pending.clear()
        self._pending_ids.clear()
        self._unsynced.clear()
        self.pending_bytes = 0
        self._chunk_bytes = None
        self._next = self._db.execute("SELECT coalesce(max(id), 0) + 1 FROM content").fetchone()[0]

    def measure_chunks(self) -> int:
        """How many bytes the chunk files have. They are added up once, since every snapshot asks."""
        if self._chunk_bytes is None:
            self._chunk_bytes = int(self._db.execute("SELECT coalesce(sum(stored), 0) FROM chunk").fetchone()[0])
        return self._chunk_bytes

    def remove_chunks(self, most: int) -> int:
        """Delete some chunks that no content refers to, in a transaction of its own. Returns how many there were."""
        rows = self._db.execute(
            "SELECT id, hash FROM chunk WHERE id NOT IN (SELECT chunk FROM piece) LIMIT ?", (most,)
        ).fetchall()
        self._chunk_bytes = None
        with transaction(self._db):
            self._db.executemany("DELETE FROM chunk WHERE id = ?", [(row[0],) for row in rows])
        # Rows first: a file without a row does no harm, a row without a file would be damage.
        for _, digest in rows:
            self.chunk_path(digest).unlink(missing_ok=True)
        return len(rows)

    def find(self, digest: bytes) -> int | None:
        found = self._pending_ids.get(digest)
        if found is not None:
            return found
        row = self._db.execute("SELECT id FROM content WHERE hash = ?", (digest,)).fetchone()
        return row[0] if row else None

    def add_content(self, data: bytes) -> int:
        """The id of this content. Idempotent. Use `open_spool` for contents that are too large to hold in memory."""
        if len(data) > MAX_INLINE_BYTES:
            spool = self.open_spool()
            for start in range(0, len(data), MAX_CHUNK_BYTES):
                spool.write(data[start : start + MAX_CHUNK_BYTES])
            return spool.finish()
        digest = blake3(data).digest()
        found = self.find(digest)
        if found is not None:
            return found
        return self._add(digest, len(data), RAW, data)

    def open_spool(self, *, compare: bool = False) -> "ContentSpool":
        """With `compare` nothing is written: `find` tells whether the content is stored already."""
        return ContentSpool(self, compare)

    def _add(self, digest: bytes, size: int, form: int, data: bytes | None) -> int:
        content: int = self._next
        self._next += 1
        self._pending.append((content, digest, size, form, data))
        self._pending_ids[digest] = content
        self.pending_bytes += len(data) if data else 0
        return content

    def flush(self) -> None:
        """Compress the buffered contents where that saves space, and insert them in the caller's transaction."""
        rows = self._pending
        worth = [number for number, row in enumerate(rows) if row[2] > _MIN_COMPRESSED_BYTES and row[4] is not None]
        for number, small in zip(worth, self._compress_all([rows[number][4] or b"" for number in worth]), strict=True):
            content, digest, size, _, _ = rows[number]
            if len(small) < size * 0.9:
                rows[number] = (content, digest, size, ZSTD, small)
        self.written_bytes += sum(len(row[4]) for row in rows if row[4] is not None)
        self._db.executemany("INSERT INTO content VALUES (?, ?, ?, ?, ?)", rows)
        self._pending.clear()
        self._pending_ids.clear()
        self.pending_bytes = 0

    def _compress_all(self, some: list[bytes]) -> list[bytes]:
        """Many contents are compressed in zstd's own threads, which do not hold the GIL."""
        if len(some) < _MIN_PARALLEL_CONTENTS:
            return [self._compress(data) for data in some]
        found = self._zstd.multi_compress_to_buffer([*some], threads=-1)
        return [found[number].tobytes() for number in range(len(found))]

    def sync(self) -> None:
        """Flush chunk files to disk. Must be called before the commit that refers to them."""
        if not self._unsynced:
            return
        if len(self._unsynced) > _MAX_SINGLE_SYNCS:
            handle = os.open(self.folder, os.O_RDONLY | os.O_CLOEXEC)
            try:
                if _libc.syncfs(handle) != 0:
                    raise OSError(ctypes.get_errno(), "syncfs")
            finally:
                os.close(handle)
        else:
            for path in [*self._unsynced, *{path.parent for path in self._unsynced}]:
                handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)
        self._unsynced.clear()

    def add_chunk(self, data: bytes) -> int:
        digest = blake3(data).digest()
        row = self._db.execute("SELECT id FROM chunk WHERE hash = ?", (digest,)).fetchone()
        if row:
            return int(row[0])
        small = self._compress(data)
        kept = small if len(small) < len(data) * 0.95 else data
        try:
            self._write_chunk(self.chunk_path(digest), kept)
        except OSError as error:
            raise StoreWriteError(str(error)) from error
        self.written_bytes += len(kept)
        if self._chunk_bytes is not None:
            self._chunk_bytes += len(kept)
        cursor = self._db.execute(
            "INSERT INTO chunk (hash, size, stored) VALUES (?, ?, ?)", (digest, len(data), len(kept))
        )
        assert cursor.lastrowid is not None
        return cursor.lastrowid

    def _write_chunk(self, path: Path, kept: bytes) -> None:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        fresh = path.with_suffix(".new")
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            write_all(handle, kept)
        finally:
            os.close(handle)
        fresh.rename(path)
        self._unsynced.append(path)

    def chunk_path(self, digest: bytes) -> Path:
        name = digest.hex()
        return self.folder / name[:2] / name[2:]


class ContentSpool:
    """Adds one large content piece by piece. Nothing refers to it until `finish`."""

    def __init__(self, contents: ContentStore, compare: bool) -> None:
        self._contents = contents
        self._compare = compare
        self._hasher = blake3()
        self._buffer = b""
        self._chunks: list[int] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        self._hasher.update(data)
        self._size += len(data)
        if self._compare:
            return
        self._buffer += data
        while len(self._buffer) >= MAX_CHUNK_BYTES:
            self._emit()

    def skip(self, length: int) -> None:
        """A hole: bytes that are zero and need no space. It is stored as its length."""
        while self._buffer:
            self._emit()
        self._hasher.update(b"hole" + length.to_bytes(8, "little"))
        self._size += length
        self._chunks.append(-length)

    def _emit(self) -> None:
        length = find_cut(self._buffer)
        self._chunks.append(self._contents.add_chunk(self._buffer[:length]))
        self._buffer = self._buffer[length:]

    def find(self) -> int | None:
        """The stored content with these bytes."""
        return self._contents.find(self._hasher.digest())

    def finish(self) -> int:
        digest = self._hasher.digest()
        found = self._contents.find(digest)
        if found is not None:
            return found
        while self._buffer:
            self._emit()
        content = self._contents._add(digest, self._size, CHUNKED, None)
        self._contents._db.executemany(
            "INSERT INTO piece VALUES (?, ?, ?)",
            [(content, position, chunk) for position, chunk in enumerate(self._chunks)],
        )
        return content


class ContentReader:
    """Reads stored contents through one connection. Every byte is checked against its hash before it is returned."""

    def __init__(self, db: sqlite3.Connection, folder: Path) -> None:
        self._db = db
        self._folder = folder
        self._decompress = zstandard.ZstdDecompressor().decompress
        self._ahead: dict[int, tuple[bytes, int, int, bytes]] = {}

    def close(self) -> None:
        """Close the connection. Only when it is used by nobody else."""
        self._db.close()

    def has_content(self, digest: bytes) -> bool:
        return self._db.execute("SELECT 1 FROM content WHERE hash = ?", (digest,)).fetchone() is not None

    def read(self, content: int) -> bytes:
        """The whole content. Raises DamagedContent."""
        return b"".join(bytes(piece) for piece in self.pieces(content))  # bytes(n): n zeros

    def read_range(self, content: int, offset: int, length: int) -> bytes:
        """A part of a content, without reading the chunks before it."""
        sizes = self._db.execute(
            """SELECT chunk.hash, coalesce(chunk.size, -piece.chunk), chunk.stored FROM piece
            LEFT JOIN chunk ON chunk.id = piece.chunk WHERE content = ? ORDER BY position""",
            (content,),
        ).fetchall()
        if not sizes:
            return self.read(content)[offset : offset + length]
        found = bytearray()
        at = 0
        for digest, size, stored in sizes:
            if at + size > offset and at < offset + length:
                start, end = max(0, offset - at), min(size, offset + length - at)
                found += self._read_piece(content, digest, size, stored)[start:end] if digest else bytes(end - start)
            at += size
        return bytes(found)

    def _read_piece(self, content: int, digest: bytes, size: int, stored: int) -> bytes:
        try:
            return self.read_chunk(digest, size, stored)
        except ValueError as error:
            raise DamagedContent(content, str(error)) from error

    def prefetch(self, contents: Sequence[int | None]) -> None:
        """Read these in one query. Each is held until it is read or until the next call."""
        marks = ",".join("?" * len(contents))
        rows = self._db.execute(f"SELECT id, hash, size, form, data FROM content WHERE id IN ({marks})", contents)  # noqa: S608
        self._ahead = {row[0]: row[1:] for row in rows}

    def take_small(self, content: int) -> bytes | None:
        """The whole content when it was prefetched and is small; None otherwise. Raises DamagedContent."""
        row = self._ahead.get(content)
        if row is None or row[2] == CHUNKED:
            return None
        return self._inline(content, *self._ahead.pop(content))

    def pieces(self, content: int) -> Iterator[bytes | int]:
        """The content in chunks; a number is the length of a hole. Raises DamagedContent, possibly after some chunks."""
        row = self._ahead.pop(content, None)
        if row is None:
            row = self._db.execute("SELECT hash, size, form, data FROM content WHERE id = ?", (content,)).fetchone()
        if row is None:
            raise DamagedContent(content, "it is not in the store")
        digest, size, form, data = row
        if form != CHUNKED:
            yield self._inline(content, digest, size, form, data)
            return
        total = 0
        chunks = self._db.execute(
            """SELECT chunk.hash, chunk.size, chunk.stored, piece.chunk FROM piece
            LEFT JOIN chunk ON chunk.id = piece.chunk WHERE content = ? ORDER BY position""",
            (content,),
        ).fetchall()
        for chunk_digest, chunk_size, stored, chunk in chunks:
            if chunk < 0:
                total -= chunk
                yield -chunk
                continue
            if chunk_digest is None:
                raise DamagedContent(content, "a chunk is not in the store")
            piece = self._read_piece(content, chunk_digest, chunk_size, stored)
            total += len(piece)
            yield piece
        if total != size:
            raise DamagedContent(content, f"it has {total} bytes instead of {size}")

    def _inline(self, content: int, digest: bytes, size: int, form: int, data: bytes) -> bytes:
        try:
            plain = self._decompress(data, max_output_size=size) if form == ZSTD else bytes(data)
        except zstandard.ZstdError as error:
            raise DamagedContent(content, str(error)) from error
        if blake3(plain).digest() != digest:
            raise DamagedContent(content, "its bytes do not match its hash")
        return plain

    def read_chunk(self, digest: bytes, size: int, stored: int) -> bytes:
        """One chunk. Raises ValueError when it is damaged."""
        name = digest.hex()
        try:
            kept = (self._folder / name[:2] / name[2:]).read_bytes()
            plain = kept if stored == size else self._decompress(kept, max_output_size=size)
        except (OSError, zstandard.ZstdError) as error:
            raise ValueError(f"chunk {name[:16]}: {error}") from error
        if blake3(plain).digest() != digest:
            raise ValueError(f"chunk {name[:16]}: its bytes do not match its hash")
        return plain


def write_all(handle: int, data: bytes) -> None:
    written = os.write(handle, data)
    while written < len(data):
        written += os.write(handle, memoryview(data)[written:])
