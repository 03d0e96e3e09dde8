"""Reads files through directory handles. It never follows a symlink, never blocks on a FIFO, and reads a bounded amount."""

import os
import stat
from typing import NamedTuple

from freehold.history.contents import MAX_INLINE_BYTES, ContentStore
from freehold.history.model import FLAG_CHANGING, FLAG_COMPLETE, FLAG_OVER_QUOTA, FLAG_TOO_LARGE, FLAG_UNREADABLE

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
MAX_ATTEMPTS = 4
_BLOCK = 1 << 20


class StoredFile(NamedTuple):
    """What was found under a name: its stat at the time of reading, and the stored content."""

    stat: os.stat_result
    content: int | None
    flag: int


class SnapshotLimits:
    """How much one snapshot may store. Of files beyond it only the name and the size are recorded."""

    def __init__(self, largest: int, room: int) -> None:
        self.largest = largest
        self.room = room

    def refuse(self, size: int, written: int) -> int | None:
        if size > self.largest:
            return FLAG_TOO_LARGE
        return FLAG_OVER_QUOTA if written + size > self.room else None


def store_file(
    contents: ContentStore, limits: SnapshotLimits, folder: int, name: bytes, found: os.stat_result
) -> StoredFile | None:
    """Store the file, symlink or special file `name` in the folder. None when it is gone.

    A file that changes while it is read is read again, at most MAX_ATTEMPTS times; then the last content is stored and
    flagged. Reading stops at the size that the file had when it was opened, so a growing file is read only that far.
    """
    try:
        if stat.S_ISLNK(found.st_mode):
            return _store_link(contents, folder, name)
        if stat.S_ISREG(found.st_mode):
            return _store_file(contents, limits, folder, name, found)
    except FileNotFoundError:
        return None
    except OSError:
        return _record_only(folder, name, FLAG_UNREADABLE)
    return StoredFile(found, None, FLAG_COMPLETE)


def _record_only(folder: int, name: bytes, flag: int) -> StoredFile | None:
    try:
        return StoredFile(os.stat(name, dir_fd=folder, follow_symlinks=False), None, flag)
    except OSError:
        return None


def _store_link(contents: ContentStore, folder: int, name: bytes) -> StoredFile:
    target = os.readlink(name, dir_fd=folder)
    return StoredFile(os.stat(name, dir_fd=folder, follow_symlinks=False), contents.add_content(target), FLAG_COMPLETE)


def _store_file(
    contents: ContentStore, limits: SnapshotLimits, folder: int, name: bytes, before: os.stat_result
) -> StoredFile | None:
    handle = os.open(name, FILE_FLAGS, dir_fd=folder)
    try:
        for _ in range(MAX_ATTEMPTS + 1):  # the first attempt may find another file than was listed
            refused = limits.refuse(before.st_size, contents.written_bytes)
            content = (
                _read(contents, handle, before.st_size) if refused is None and stat.S_ISREG(before.st_mode) else None
            )
            after = os.fstat(handle)
            if _same_state(before, after):
                return StoredFile(after, content, refused or FLAG_COMPLETE)
            before = after
        return StoredFile(after, content, refused or FLAG_CHANGING)
    finally:
        os.close(handle)


def _same_state(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_ino, one.st_mtime_ns, one.st_size, one.st_ctime_ns, one.st_mode) == (
        other.st_ino, other.st_mtime_ns, other.st_size, other.st_ctime_ns, other.st_mode,
    )  # fmt: skip


def _read(contents: ContentStore, handle: int, size: int) -> int:
    if size <= MAX_INLINE_BYTES:
        data = os.pread(handle, size, 0) if size else b""
        if len(data) == size:
            return contents.add_content(data)
    spool = contents.open_spool()
    at = 0
    while at < size:
        data = os.pread(handle, min(_BLOCK, size - at), at)
        if not data:
            break
        spool.write(data)
        at += len(data)
    return spool.finish()


def open_folder(folder: int, name: bytes) -> int:
    """A handle on a folder inside a folder. OSError when the name is not a folder; a symlink is not a folder."""
    return os.open(name, FOLDER_FLAGS, dir_fd=folder)


def open_path(root: int, parts: tuple[bytes, ...]) -> int:
    """A handle on a folder below the root handle, opened part by part. The caller closes it."""
    handle = os.dup(root)
    try:
        for part in parts:
            handle, upper = os.open(part, FOLDER_FLAGS, dir_fd=handle), handle
            os.close(upper)
    except OSError:
        os.close(handle)
        raise
    return handle
