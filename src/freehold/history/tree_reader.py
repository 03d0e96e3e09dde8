"""Reading the tree through directory handles: never through a symlink, never blocked by what was planted, never without end."""

import os
import stat
from typing import NamedTuple

from freehold.history.contents import INLINE, Contents
from freehold.history.model import FLAG_FINE, FLAG_OVER_QUOTA, FLAG_TOO_LARGE, FLAG_UNREADABLE, FLAG_UNSETTLED

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
ATTEMPTS = 4
_BLOCK = 1 << 20


class Taken(NamedTuple):
    """What was found under a name: its stat as of the reading, and what of it was stored."""

    stat: os.stat_result
    content: int | None
    flag: int


class Limits:
    """What one snapshot may still store; files beyond it are noted, not kept."""

    def __init__(self, largest: int, room: int) -> None:
        self.largest = largest
        self.room = room

    def refuse(self, size: int, written: int) -> int | None:
        if size > self.largest:
            return FLAG_TOO_LARGE
        return FLAG_OVER_QUOTA if written + size > self.room else None


def take(contents: Contents, limits: Limits, folder: int, name: bytes, found: os.stat_result) -> Taken | None:
    """Store what `name` in the folder handle is now. None: it is gone.

    A file that changes while it is read is read again, a bounded number of times; then the last reading is kept and
    flagged. Reading ends at the size the file had when it was opened, so one that never stops growing costs that size.
    """
    try:
        if stat.S_ISLNK(found.st_mode):
            return _take_link(contents, folder, name)
        if stat.S_ISREG(found.st_mode):
            return _take_file(contents, limits, folder, name, found)
    except FileNotFoundError:
        return None
    except OSError:
        return _noted(folder, name, FLAG_UNREADABLE)
    return Taken(found, None, FLAG_FINE)


def _noted(folder: int, name: bytes, flag: int) -> Taken | None:
    try:
        return Taken(os.stat(name, dir_fd=folder, follow_symlinks=False), None, flag)
    except OSError:
        return None


def _take_link(contents: Contents, folder: int, name: bytes) -> Taken:
    target = os.readlink(name, dir_fd=folder)
    return Taken(os.stat(name, dir_fd=folder, follow_symlinks=False), contents.put(target), FLAG_FINE)


def _take_file(contents: Contents, limits: Limits, folder: int, name: bytes, before: os.stat_result) -> Taken | None:
    handle = os.open(name, FILE_FLAGS, dir_fd=folder)
    try:
        for _ in range(ATTEMPTS + 1):  # the first may find another file than was listed
            refused = limits.refuse(before.st_size, contents.written_bytes)
            content = (
                _read(contents, handle, before.st_size) if refused is None and stat.S_ISREG(before.st_mode) else None
            )
            after = os.fstat(handle)
            if _same_state(before, after):
                return Taken(after, content, refused or FLAG_FINE)
            before = after
        return Taken(after, content, refused or FLAG_UNSETTLED)
    finally:
        os.close(handle)


def _same_state(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_ino, one.st_mtime_ns, one.st_size, one.st_ctime_ns, one.st_mode) == (
        other.st_ino, other.st_mtime_ns, other.st_size, other.st_ctime_ns, other.st_mode,
    )  # fmt: skip


def _read(contents: Contents, handle: int, size: int) -> int:
    if size <= INLINE:
        data = os.pread(handle, size, 0) if size else b""
        if len(data) == size:
            return contents.put(data)
    spool = contents.spool()
    at = 0
    while at < size:
        data = os.pread(handle, min(_BLOCK, size - at), at)
        if not data:
            break
        spool.write(data)
        at += len(data)
    return spool.finish()


def open_folder(folder: int, name: bytes) -> int:
    """A handle on a folder inside a folder. OSError when the name is anything else, a link included."""
    return os.open(name, FOLDER_FLAGS, dir_fd=folder)


def open_path(root: int, parts: tuple[bytes, ...]) -> int:
    """A handle on a folder below the root handle, one component at a time; the caller closes it."""
    handle = os.dup(root)
    try:
        for part in parts:
            handle, upper = os.open(part, FOLDER_FLAGS, dir_fd=handle), handle
            os.close(upper)
    except OSError:
        os.close(handle)
        raise
    return handle
