"""Sends the contents of files that the other side lacks, many small ones in one piece, and receives them."""

import asyncio
import os
import stat
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from blake3 import blake3

from freehold.errors import FreeholdError
from freehold.fleet.content_cache import MAX_CONTENT, ContentCache
from freehold.fleet.copy_writer import CopyWriter, DraftFile
from freehold.fleet.folder_state import FolderEntry
from freehold.fleet.wire import encode_message, read_list

BATCH = MAX_CONTENT
_LENGTH = struct.Struct("!Q")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
MORE, LAST, GONE = 0, 1, 2
T = TypeVar("T")

Piece = tuple[int, int, bytes]
"""Which of the wanted files, whether it goes on, and bytes."""


async def send_contents(writer: asyncio.StreamWriter, root: Path, wanted: Sequence[FolderEntry]) -> None:
    """What was changed or removed meanwhile is said to be gone: the other side gets it the next time."""
    pieces = _read_pieces(root, wanted)
    while batch := await asyncio.to_thread(_collect, pieces):
        body = b"".join(data for _, _, data in batch)
        writer.write(encode_message([[number, state, len(data)] for number, state, data in batch]))
        writer.write(_LENGTH.pack(len(body)))
        writer.write(body)
        await writer.drain()
    writer.write(encode_message([]))
    await writer.drain()


async def receive_contents(reader: asyncio.StreamReader, wanted: Sequence[FolderEntry], sink: "ContentSink") -> None:
    """Until the other side has sent all."""
    while listing := await read_list(reader):
        sizes = _check_listing(listing, len(wanted))
        total = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))[0]
        if total != sum(size for _, _, size in sizes) or total > 2 * BATCH:
            raise FreeholdError("fleet.bad-message", "The contents of files are not as long as was said")
        body = await reader.readexactly(total)
        await finish_thread(sink.take, wanted, sizes, body)


async def finish_thread(work: Callable[..., T], *words: Any) -> T:
    """In a thread. Who is cancelled meanwhile waits for its end: it uses handles that are closed afterwards."""
    working = asyncio.ensure_future(asyncio.to_thread(work, *words))
    try:
        return await asyncio.shield(working)
    finally:
        await asyncio.wait({working})


class ContentSink:
    """Writes each content to where it belongs, if its hash is the one that was promised.

    `places` are all entries that have this content. `cache` keeps it for the next computer.
    """

    def __init__(
        self, writer: CopyWriter, places: Mapping[str, Sequence[FolderEntry]], cache: ContentCache | None
    ) -> None:
        self._writer = writer
        self._places = places
        self._cache = cache
        self._draft: DraftFile | None = None
        self._hash = blake3()
        self._left = 0
        self._next = 0
        self._is_partial = False
        self.missing: set[str] = set()
        """Contents that could not be had."""

    def close(self) -> None:
        """Idempotent. Whatever was not complete leaves nothing."""
        if self._draft is not None:
            self._draft.close()
            self._draft = None

    def take(self, wanted: Sequence[FolderEntry], sizes: Sequence[tuple[int, int, int]], body: bytes) -> None:
        at = 0
        for number, state, size in sizes:
            if number < self._next or (self._is_partial and number != self._next):
                raise FreeholdError("fleet.bad-message", "The contents of files are not in the order of their list")
            self._is_partial = state == MORE
            self._next = number if self._is_partial else number + 1
            self._take_piece(wanted[number], state, body[at : at + size])
            at += size

    def _take_piece(self, entry: FolderEntry, state: int, data: bytes) -> None:
        if self._draft is None and state == LAST:
            self._place(entry, data)
            return
        if self._draft is None and state == MORE:
            self._draft = self._writer.open_file(entry)
            self._hash = blake3()
            self._left = entry.size
        self._left -= len(data)
        if state == GONE or self._draft is None or self._left < 0:
            self.close()
            self.missing.add(entry.content)
            return  # what still comes of it finds no draft, and is dropped
        self._draft.write(data)
        self._hash.update(data)
        if state == LAST:
            self._finish_long(entry)

    def _place(self, entry: FolderEntry, data: bytes) -> None:
        places = self._places[entry.content]
        is_as_long = all(place.size == len(data) for place in places)  # the limit counts what was said
        if not is_as_long or blake3(data).hexdigest() != entry.content:
            self.missing.add(entry.content)
            return
        if self._cache is not None:
            self._cache.add(entry.content, data)
        for place in places:
            self._writer.write_file(place, data)

    def _finish_long(self, entry: FolderEntry) -> None:
        assert self._draft is not None
        if self._hash.hexdigest() == entry.content:
            self._draft.complete()
        else:
            self.missing.add(entry.content)
        self.close()


def list_wanted(entries: Sequence[FolderEntry]) -> tuple[list[FolderEntry], dict[str, list[FolderEntry]]]:
    """One entry for each content that is sent, and all entries that have it. Long files are sent for each name."""
    places: dict[str, list[FolderEntry]] = {}
    wanted: list[FolderEntry] = []
    for entry in entries:
        if entry.content not in places or entry.size > MAX_CONTENT:
            wanted.append(entry)
        places.setdefault(entry.content, []).append(entry)
    return wanted, places


def _check_listing(listing: list[object], count: int) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    for row in listing:
        if not isinstance(row, list) or len(row) != 3 or not all(isinstance(one, int) for one in row):
            raise FreeholdError("fleet.bad-message", "A list of contents is not valid")
        number, state, size = row
        if not 0 <= number < count or state not in (MORE, LAST, GONE) or not 0 <= size <= BATCH:
            raise FreeholdError("fleet.bad-message", "A list of contents is not valid")
        found.append((number, state, size))
    return found


def _collect(pieces: Iterator[Piece]) -> list[Piece]:
    batch: list[Piece] = []
    size = 0
    for piece in pieces:
        batch.append(piece)
        size += len(piece[2])
        if size >= BATCH or len(batch) >= 4096:
            break
    return batch


def _read_pieces(root: Path, wanted: Sequence[FolderEntry]) -> Iterator[Piece]:
    handle = os.open(root, _FOLDER)
    try:
        for number, entry in enumerate(wanted):
            yield from _read_file(handle, number, entry)
    finally:
        os.close(handle)


def _read_file(root: int, number: int, entry: FolderEntry) -> Iterator[Piece]:
    try:
        handle = _open_below(root, entry.path)
    except OSError:
        yield number, GONE, b""
        return
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            yield number, GONE, b""
            return
        data = os.read(handle, BATCH)
        while len(data) == BATCH:
            following = os.read(handle, BATCH)
            if not following:
                break
            yield number, MORE, data
            data = following
        yield number, LAST, data
    finally:
        os.close(handle)


def _open_below(root: int, path: str) -> int:
    *folders, name = path.split("/")
    opened: list[int] = []
    try:
        for part in folders:
            opened.append(os.open(part, _FOLDER, dir_fd=opened[-1] if opened else root))
        return os.open(name, _FILE, dir_fd=opened[-1] if opened else root)
    finally:
        for handle in opened:
            os.close(handle)
