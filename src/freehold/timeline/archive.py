"""Old events in compressed files beside the database. They stay part of the hash chain and are read like all others.

A file is a row of gzip members, so `zcat` prints it. Each member holds a block of events, one JSON object a line, with
the event's hash and without the previous one, which is the hash of the line before. The database knows where each block
is and which kinds are in it.
"""

import contextlib
import heapq
import itertools
import json
import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from freehold.timeline.event import DATA_LIMIT, GENESIS

BLOCK_EVENTS = 256
FILE_BYTES = 8 << 20
"""A file that is at least this long gets no further block."""
ARCHIVE_FORMAT = 2
"""The format of the database from which on it can have an archive."""
_MAX_BLOCK_BYTES = BLOCK_EVENTS * (DATA_LIMIT + 4096)
_GZIP = 31  # for zlib: the format of gzip with the largest window
_LEVEL = 6
_BLOCK = "SELECT first, last, hash, previous, file, offset, size FROM archive"

EventRow = tuple[int, str, str, str, str, str, str]
"""seq, at, kind, who, data as text, previous, hash: the columns of the table `event`."""


class SqlReader(Protocol):
    """A connection or a transaction."""

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor: ...


class UnreadableBlock(Exception):
    """The block is missing, or not what was written."""


@dataclass(frozen=True)
class ArchivedBlock:
    """Where the events `first` to `last` are. `hash` is that of the last one, `previous` that of the one before the first."""

    first: int
    last: int
    hash: str
    previous: str
    file: str
    offset: int
    size: int


def archive_folder(database: Path) -> Path:
    return database.with_name("timeline-archive")


def find_archived_end(connection: SqlReader) -> int:
    """The number of the last archived event; 0 when there is none."""
    if not _has_archive(connection):
        return 0
    row = connection.execute("SELECT last FROM archive ORDER BY first DESC LIMIT 1").fetchone()
    return int(row[0]) if row else 0


def list_blocks(connection: SqlReader) -> Iterator[ArchivedBlock]:
    """All blocks, the oldest first."""
    if _has_archive(connection):
        for row in connection.execute(f"{_BLOCK} ORDER BY first"):
            yield ArchivedBlock(*row)


def find_last_block(connection: SqlReader) -> ArchivedBlock | None:
    row = connection.execute(f"{_BLOCK} ORDER BY first DESC LIMIT 1").fetchone()
    return ArchivedBlock(*row) if row else None


def select_blocks(
    connection: SqlReader, after: int, until: int, kinds: Sequence[str], since: str, *, newest_first: bool
) -> Iterator[ArchivedBlock]:
    """Blocks that may have events with `after < seq <= until`, of these exact kinds (any when empty), and not before `since`."""
    row = connection.execute("SELECT max(first) FROM archive WHERE first <= ?", (after + 1,)).fetchone()
    span = (row[0] or 1, until)
    order = "DESC" if newest_first else "ASC"
    if not kinds:
        sql = f"{_BLOCK} WHERE first >= ? AND first <= ? AND latest >= ? ORDER BY first {order}"
        yield from (ArchivedBlock(*row) for row in connection.execute(sql, (*span, since)))
        return
    # One ordered walk through the index for each kind, as far as it is asked for.
    sql = f"SELECT first FROM archive_kind WHERE kind = ? AND first >= ? AND first <= ? ORDER BY first {order}"  # noqa: S608 - constant text only
    walks = (connection.execute(sql, (kind, *span)) for kind in kinds)
    for (first,), _ in itertools.groupby(heapq.merge(*walks, reverse=newest_first)):
        row = connection.execute(f"{_BLOCK} WHERE first = ? AND latest >= ?", (first, since)).fetchone()
        if row is not None:
            yield ArchivedBlock(*row)


def encode_block(rows: Sequence[EventRow]) -> bytes:
    """The bytes of a block, the same for the same events."""
    lines = (
        f'{{"at":{json.dumps(at)},"data":{data},"hash":"{chained}","kind":"{kind}","seq":{seq},"who":{json.dumps(who)}}}\n'
        for seq, at, kind, who, data, _, chained in rows
    )
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _GZIP)
    return packer.compress("".join(lines).encode("ascii")) + packer.flush()


def read_lines(folder: Path, block: ArchivedBlock) -> list[str]:
    """The lines of a block, one for each of its events. Raises UnreadableBlock."""
    try:
        with open(folder / block.file, "rb", opener=_no_follow) as file:
            file.seek(block.offset)
            packed = file.read(block.size)
        unpacker = zlib.decompressobj(_GZIP)
        text = unpacker.decompress(packed, _MAX_BLOCK_BYTES)
        if len(packed) != block.size or not unpacker.eof or unpacker.unused_data:
            raise UnreadableBlock(f"{block.file} was cut or changed at byte {block.offset}")
        lines = text.decode("ascii").splitlines()
    except OSError as error:
        raise UnreadableBlock(f"{block.file} cannot be read: {error.strerror}") from error
    except (zlib.error, ValueError) as error:
        raise UnreadableBlock(f"{block.file} was changed at byte {block.offset}: {error}") from error
    if len(lines) != block.last - block.first + 1:
        raise UnreadableBlock(f"{block.file} has {len(lines)} events at byte {block.offset}")
    return lines


def read_block(folder: Path, block: ArchivedBlock) -> list[EventRow]:
    """The events of a block, as the database had them. Raises UnreadableBlock unless they have its numbers in order.

    Their hashes are not checked here.
    """
    rows: list[EventRow] = []
    previous = block.previous
    for seq, line in enumerate(read_lines(folder, block), start=block.first):
        found = parse_line(line, seq, block)
        rows.append(
            (seq, found["at"], found["kind"], found["who"], encode_canonical(found["data"]), previous, found["hash"])
        )
        previous = found["hash"]
    return rows


def parse_line(line: str, seq: int, block: ArchivedBlock) -> dict[str, Any]:
    """Raises UnreadableBlock unless the line has event `seq`, with every field of the right type."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    types = {"seq": int, "at": str, "kind": str, "who": str, "data": dict, "hash": str}
    if type(found) is not dict or {name: type(value) for name, value in found.items()} != types or found["seq"] != seq:
        raise UnreadableBlock(f"event {seq} was changed in {block.file} after byte {block.offset}")
    return found


def encode_canonical(data: object) -> str:
    """The text of an event's data, as `encode_data` wrote it."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), allow_nan=False)


class ArchiveWriter:
    """Appends blocks to the newest file. Call it inside the write transaction that also records the block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write_block(self, rows: Sequence[EventRow], last: ArchivedBlock | None) -> ArchivedBlock:
        """The block is on disk when this returns. `last` is the newest recorded one.

        What is behind it in the file was written by a process that was killed before it could record it, and goes.
        """
        packed = encode_block(rows)
        end = last.offset + last.size if last is not None else 0
        with contextlib.ExitStack() as stack:
            if last is not None and end < FILE_BYTES and self._has_bytes(last.file, end):
                name, start = last.file, end
                file = stack.enter_context(_descriptor(self._folder / name, os.O_RDWR))
            else:
                self._folder.mkdir(mode=0o700, exist_ok=True)
                name, start = f"{rows[0][0]:012d}.jsonl.gz", 0
                file = stack.enter_context(_descriptor(self._folder / name, os.O_RDWR | os.O_CREAT))
            os.ftruncate(file, start)
            _write_all(file, packed, start)
            os.fsync(file)
            if start == 0:
                os.fsync(stack.enter_context(_descriptor(self._folder, os.O_RDONLY | os.O_DIRECTORY)))
                os.fsync(stack.enter_context(_descriptor(self._folder.parent, os.O_RDONLY | os.O_DIRECTORY)))
        previous = last.hash if last is not None else GENESIS
        return ArchivedBlock(rows[0][0], rows[-1][0], rows[-1][6], previous, name, start, len(packed))

    def _has_bytes(self, name: str, count: int) -> bool:
        """False also when the owner has moved the file away: then a new one begins."""
        path = self._folder / name
        return path.is_file() and not path.is_symlink() and path.stat().st_size >= count


def _has_archive(connection: SqlReader) -> bool:
    return int(connection.execute("PRAGMA user_version").fetchone()[0]) >= ARCHIVE_FORMAT


def _no_follow(path: str, flags: int) -> int:
    """Not blocking: a pipe in the place of a file would hold up every reader of the timeline."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


@contextlib.contextmanager
def _descriptor(path: Path, flags: int) -> Iterator[int]:
    file = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        yield file
    finally:
        os.close(file)


def _write_all(file: int, text: bytes, start: int) -> None:
    done = 0
    while done < len(text):
        done += os.pwrite(file, text[done:], start + done)
