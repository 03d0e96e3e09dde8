"""Reads files through directory handles. It never follows a symlink and never blocks on a FIFO or a lease.

The keeper owns the files, so a mode that forbids reading is changed for the moment of reading, and put back.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from blake3 import blake3

from freehold.history.contents import MAX_INLINE_BYTES, ContentSpool, ContentStore
from freehold.history.model import (
    FLAG_CHANGING,
    FLAG_COMPLETE,
    FLAG_OVER_QUOTA,
    FLAG_OVER_RATE,
    FLAG_UNREADABLE,
    PathVersion,
)

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
FILE_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
MAX_ATTEMPTS = 4
_BLOCK = 1 << 20
_MIN_HOLE = 1 << 20
_MAX_WIDENED = 256


class StoredFile(NamedTuple):
    """What was found under a name: its stat at the time of reading, and the stored content."""

    stat: os.stat_result
    content: int | None
    flag: int
    forced: bool = False
    """Its mode was changed for reading and put back, so its ctime is just now although nobody else touched it."""


class WrittenFile(NamedTuple):
    """A file that a restore has just written. It has the mode, time, size and content of `target`."""

    ino: int
    ctime: int
    target: PathVersion

    def is_still(self, found: os.stat_result) -> bool:
        """Whether `found` is this file, and nobody has touched it since."""
        target = self.target
        return (self.ino, self.ctime, target.mtime, target.size, target.mode) == (
            found.st_ino, found.st_ctime_ns, found.st_mtime_ns, found.st_size, found.st_mode,
        )  # fmt: skip


class TrustedFiles(NamedTuple):
    """What a restore has just written: files by place, and the nodes of the inodes that it made."""

    files: dict[int, WrittenFile]
    nodes: dict[int, int]


class SnapshotLimits:
    """How many bytes one snapshot may add, for the quota and for the hourly rate of its author.

    Of files beyond it only the name and the size are recorded. They are read again by later snapshots.
    """

    def __init__(self, room: int, rate: int) -> None:
        self._room = room
        self._rate = rate

    def refuse(self, found: os.stat_result, written: int) -> int | None:
        size = min(found.st_size, found.st_blocks * 512 + MAX_INLINE_BYTES)  # holes need no space
        if written + size > self._room:
            return FLAG_OVER_QUOTA
        return FLAG_OVER_RATE if written + size > self._rate else None


class WidenedModes:
    """Folders whose mode was changed so that they can be read. `put_back` sets the modes that they had."""

    def __init__(self) -> None:
        self._widened: dict[tuple[int, int], tuple[int, int]] = {}

    def open_folder(self, folder: int, name: bytes) -> int:
        """As `open_folder`, also when the mode of the folder forbids it and the keeper may change it."""
        try:
            handle = open_folder(folder, name)
        except PermissionError:
            self._widen(folder, name)
            return open_folder(folder, name)
        found = os.fstat(handle)
        if found.st_mode & 0o500 != 0o500 and os.geteuid() != 0 and found.st_uid == os.geteuid():
            os.close(handle)
            self._widen(folder, name)
            return open_folder(folder, name)
        return handle

    def open_root(self, root: Path) -> int:
        """A handle on a persistent folder itself."""
        above = os.open(root.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return self.open_folder(above, os.fsencode(root.name))
        finally:
            os.close(above)

    def open_path(self, root: int, parts: tuple[bytes, ...]) -> int:
        """A handle on a folder below the root handle, opened part by part. The caller closes it."""
        handle = os.dup(root)
        try:
            for part in parts:
                handle, upper = self.open_folder(handle, part), handle
                os.close(upper)
        except OSError:
            os.close(handle)
            raise
        return handle

    def forget(self, handle: int) -> None:
        """The mode of this folder was set; it is not put back."""
        found = os.fstat(handle)
        known = self._widened.pop((found.st_dev, found.st_ino), None)
        if known is not None:
            os.close(known[0])

    def put_back(self) -> None:
        for handle, mode in reversed(list(self._widened.values())):
            with suppress(OSError):
                _through(handle).chmod(mode)
            os.close(handle)
        self._widened.clear()

    def _widen(self, folder: int, name: bytes) -> None:
        if len(self._widened) >= _MAX_WIDENED:
            self.put_back()
        handle = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_DIRECTORY, dir_fd=folder)
        try:
            found = os.fstat(handle)
            mode = stat.S_IMODE(found.st_mode)
            _through(handle).chmod(mode | 0o700)
        except BaseException:
            os.close(handle)
            raise
        if self._widened.setdefault((found.st_dev, found.st_ino), (handle, mode))[0] != handle:
            os.close(handle)


def _through(handle: int) -> Path:
    """The file behind a handle that was opened with O_PATH, whatever its name is now."""
    return Path(f"/proc/self/fd/{handle}")


def store_file(
    contents: ContentStore,
    limits: SnapshotLimits,
    folder: int,
    name: bytes,
    found: os.stat_result,
    *,
    may_be_stored: bool = False,
) -> StoredFile | None:
    """Store the file, symlink or special file `name` in the folder. None when it is gone.

    A file beyond the limits is read only when it may be stored already, because it looks as it did.

    A file that changes while it is read is read again, at most MAX_ATTEMPTS times; then the last content is stored and
    flagged. Reading stops at the size that the file had when it was opened, so a growing file is read only that far.
    """
    try:
        if stat.S_ISLNK(found.st_mode):
            return _store_link(contents, folder, name)
        if stat.S_ISREG(found.st_mode):
            return _store_file(contents, limits, folder, name, found, may_be_stored)
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
    contents: ContentStore,
    limits: SnapshotLimits,
    folder: int,
    name: bytes,
    before: os.stat_result,
    may_be_stored: bool,
) -> StoredFile | None:
    refused = limits.refuse(before, contents.written_bytes)
    if refused is not None and not may_be_stored:
        return _record_only(folder, name, refused)
    handle, forced = _open_file(folder, name)
    try:
        if forced:
            before = os.fstat(handle)
        for _ in range(MAX_ATTEMPTS + 1):  # the first attempt may find another file than was listed
            refused = limits.refuse(before, contents.written_bytes)
            content: int | None = None
            if stat.S_ISREG(before.st_mode):
                content = _read(contents, handle, before) if refused is None else _find(contents, handle, before)
            after = os.fstat(handle)
            if is_same_state(before, after):
                return StoredFile(after, content, FLAG_COMPLETE if content is not None else refused or 0, forced)
            before = after
        return StoredFile(after, content, refused or FLAG_CHANGING)
    finally:
        os.close(handle)


def _open_file(folder: int, name: bytes) -> tuple[int, bool]:
    """A handle for reading, and whether the mode of the file was changed for it. The mode is put back at once."""
    try:
        return os.open(name, FILE_FLAGS, dir_fd=folder), False
    except PermissionError:
        path = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        mode = os.fstat(path).st_mode
        if not stat.S_ISREG(mode):
            raise PermissionError("only the mode of a file is changed")
        _through(path).chmod(stat.S_IMODE(mode) | 0o400)
        try:
            return os.open(_through(path), FILE_FLAGS & ~os.O_NOFOLLOW), True
        finally:
            _through(path).chmod(stat.S_IMODE(mode))
    finally:
        os.close(path)


def set_file_mode(folder: int, name: bytes, mode: int, mtime: int) -> None:
    """Set mode and time of a file without opening it: it may be unreadable, or another program may hold a lease on it."""
    path = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(path).st_mode):
            raise FileNotFoundError("it is not a file any more")
        _through(path).chmod(mode)
        os.utime(_through(path), ns=(mtime, mtime))
    finally:
        os.close(path)


def is_same_state(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_ino, one.st_mtime_ns, one.st_size, one.st_ctime_ns, one.st_mode) == (
        other.st_ino, other.st_mtime_ns, other.st_size, other.st_ctime_ns, other.st_mode,
    )  # fmt: skip


def _read(contents: ContentStore, handle: int, found: os.stat_result) -> int:
    size = found.st_size
    if size <= MAX_INLINE_BYTES:
        data = os.pread(handle, size, 0) if size else b""
        if len(data) == size:
            return contents.add_content(data)
    spool = contents.open_spool()
    _read_into(spool, handle, found)
    return spool.finish()


def _find(contents: ContentStore, handle: int, found: os.stat_result) -> int | None:
    """The content, if it is stored already."""
    if found.st_size <= MAX_INLINE_BYTES:
        return contents.find(blake3(os.pread(handle, found.st_size, 0)).digest())
    spool = contents.open_spool(compare=True)
    _read_into(spool, handle, found)
    return spool.find()


def _read_into(spool: ContentSpool, handle: int, found: os.stat_result) -> None:
    size = found.st_size
    sparse = size - found.st_blocks * 512 >= _MIN_HOLE
    at = 0
    while at < size:
        hole = _find_hole(handle, at, size) if sparse else 0
        if hole:
            spool.skip(hole)
            at += hole
            continue
        length = min(_BLOCK, size - at)
        data = os.pread(handle, _measure_data(handle, at, size, length) if sparse else length, at)
        if not data:
            break
        spool.write(data)
        at += len(data)


def _measure_data(handle: int, at: int, size: int, length: int) -> int:
    """How many bytes to read from `at`: up to `length`, or to the next long hole."""
    end = os.lseek(handle, at, os.SEEK_HOLE)
    return end - at if at < end < at + length and _find_hole(handle, end, size) else length


def _find_hole(handle: int, at: int, size: int) -> int:
    """The length of the hole that begins at `at`; 0 when there is none, or only a short one."""
    try:
        data = min(os.lseek(handle, at, os.SEEK_DATA), size)
    except OSError:
        data = size  # there is no data after `at`
    return data - at if data - at >= _MIN_HOLE else 0


def open_folder(folder: int, name: bytes) -> int:
    """A handle on a folder inside a folder. OSError when the name is not a folder; a symlink is not a folder."""
    return os.open(name, FOLDER_FLAGS, dir_fd=folder)


def open_path(root: int, parts: tuple[bytes, ...]) -> int:
    """A handle on a folder below the root handle, opened part by part. The caller closes it."""
    handle = os.dup(root)
    try:
        for part in parts:
            handle, upper = open_folder(handle, part), handle
            os.close(upper)
    except OSError:
        os.close(handle)
        raise
    return handle
