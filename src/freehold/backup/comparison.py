"""Compares a restored home, as it is on the disk, with its backup: byte by byte, and modes, times and links.

What agents have closed to everybody, such as a folder of mode 000, only root can compare. It is left out otherwise.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from blake3 import blake3

from freehold.backup.file_list import ListedFile
from freehold.backup.history_rebuild import LivePath
from freehold.history.contents import ContentReader, DamagedContent

_READ_BYTES = 1 << 20


def compare_listed(folder: Path, files: Iterable[ListedFile]) -> Iterator[tuple[Path, str]]:
    """The paths that are not as the list of the backup says, each with what is different."""
    for file in files:
        path = folder / os.fsdecode(file.path)
        with suppress(PermissionError):
            found = _compare_file(path, file)
            if found is not None:
                yield path, found


def compare_recorded(live: Iterable[LivePath], contents: ContentReader) -> Iterator[tuple[Path, str]]:
    """The same for the paths of the newest entry of history. What history could not store is in the list instead.

    A content that is damaged in the store itself is not told here: the verification of history tells it.
    """
    for one in live:
        if one.content is None and not stat.S_ISDIR(one.mode):
            continue
        with suppress(PermissionError, DamagedContent):
            found = _compare_kind(one.path, one.mode, one.mtime)
            if found is None and one.content is not None:
                found = _compare_content(one, contents.pieces(one.content))
            if found is not None:
                yield one.path, found


def _compare_file(path: Path, file: ListedFile) -> str | None:
    kind = {"file": stat.S_IFREG, "folder": stat.S_IFDIR, "link": stat.S_IFLNK}[file.type]
    found = _compare_kind(path, kind | stat.S_IMODE(file.mode), file.mtime)
    if found is None and file.type == "file" and not _has_blobs(path, file):
        found = "has another content"
    elif found is None and file.type == "link" and os.fsencode(path.readlink()) != file.target:
        found = "leads elsewhere"
    return found


def _compare_kind(path: Path, mode: int, mtime: int) -> str | None:
    """The mode of a link and the time of a folder count nowhere."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return "is not there"
    if stat.S_IFMT(found.st_mode) != stat.S_IFMT(mode):
        return "is of another kind"
    if not stat.S_ISLNK(mode) and stat.S_IMODE(found.st_mode) != stat.S_IMODE(mode):
        return f"has mode {stat.S_IMODE(found.st_mode):o} instead of {stat.S_IMODE(mode):o}"
    if not stat.S_ISDIR(mode) and found.st_mtime_ns != mtime:
        return "has another time"
    return None


def _has_blobs(path: Path, file: ListedFile) -> bool:
    """A file of one blob may have no size of blocks."""
    with path.open("rb") as opened:
        parts = (opened.read(file.block or -1) for _ in file.blobs)
        same = all(blake3(part).digest() == blob for part, blob in zip(parts, file.blobs, strict=True))
        return same and not opened.read(1)


def _compare_content(live: LivePath, pieces: Iterable[bytes | int]) -> str | None:
    if stat.S_ISLNK(live.mode):
        target = b"".join(bytes(piece) for piece in pieces)
        return None if os.fsencode(live.path.readlink()) == target else "leads elsewhere"
    with live.path.open("rb") as opened:
        for expected in _cut(pieces):
            if opened.read(len(expected)) != expected:
                return "has another content"
        return "has another content" if opened.read(1) else None


def _cut(pieces: Iterable[bytes | int]) -> Iterator[bytes]:
    """Parts of a bounded size. A hole is read as the zeros that it is."""
    for piece in pieces:
        if isinstance(piece, bytes):
            yield piece
            continue
        for at in range(0, piece, _READ_BYTES):
            yield bytes(min(_READ_BYTES, piece - at))
