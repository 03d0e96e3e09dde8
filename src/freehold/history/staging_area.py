"""The staging area: where a restore makes files before they are moved into place. No program in the computer can reach it."""

import ctypes
import errno
import fcntl
import os
import secrets
import shutil
import struct
import time
from collections import deque
from pathlib import Path
from typing import NamedTuple

from freehold.history.tree_reader import FOLDER_FLAGS

TEMPORARY_PREFIX = b".freehold-restore-"
"""Names of what a restore makes begin with this."""
_GET_FLAGS, _SET_FLAGS, _SPREAD = 0x80086601, 0x40086602, 0x00020000
_CREATIONS_PER_CHECK = 32
_SLOW_SECONDS = 0.000_15
_FAST_SECONDS = 0.000_06
_MAX_FOLDERS_TRIED = 6
_SAMPLES = 8
_NO_REPLACE, _EXCHANGE = 1, 2

_libc = ctypes.CDLL(None, use_errno=True)


def prepare_staging(folder: Path) -> None:
    """Make the folder, or empty it of what a killed restore left.

    ext4 searches for a free inode near the folder of a new file. Next to thousands of inodes that were just deleted (an
    `rm -rf` that is being undone) this search takes a millisecond per file. The "top of hierarchy" flag lets ext4 place
    each folder made in here elsewhere. Other file systems do not have this flag and do not need it.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    handle = os.open(folder, FOLDER_FLAGS)
    try:
        flags = struct.unpack("i", fcntl.ioctl(handle, _GET_FLAGS, struct.pack("i", 0)))[0]
        fcntl.ioctl(handle, _SET_FLAGS, struct.pack("i", flags | _SPREAD))
    except OSError:
        return
    finally:
        os.close(handle)


class StagedName(NamedTuple):
    """A name in a folder of the staging area, or beside the target where the staging area cannot be used."""

    folder: int
    name: bytes
    path: str | None
    """None beside the target. Text, because there can be very many."""


class StagingArea:
    """One folder is used until file creation in it becomes slow, then another one. The caller holds the lock.

    What is staged stays until it is moved or discarded, or until `release`.
    """

    def __init__(self, folder: Path) -> None:
        prepare_staging(folder)
        self.folder = folder
        self._is_slow = False
        self._creations = self._creating = 0.0
        self._open: list[tuple[str, int]] = []
        self._trash: deque[str] = deque()

    def make_name(self, name: bytes) -> StagedName:
        """A place for the next file."""
        if not self._open or self._is_slow:
            self._is_slow = False
            self._creations = self._creating = 0.0
            self._open.append(self._make_folder())
        path, handle = self._open[-1]
        return StagedName(handle, name, f"{path}/{os.fsdecode(name)}")

    def _make_folder(self) -> tuple[str, int]:
        """A new folder in which file creation is fast; after several tries any new folder."""
        for left in reversed(range(_MAX_FOLDERS_TRIED)):
            # ext4 chooses the location by the name: the same name would be placed next to the files of the last restore.
            path = self.folder / secrets.token_hex(8)
            path.mkdir(mode=0o700)
            handle = os.open(path, FOLDER_FLAGS)
            try:
                if left == 0 or _creation_time(handle) < _FAST_SECONDS:
                    return str(path), handle
            except BaseException:
                os.close(handle)
                self._trash.append(str(path))
                raise
            os.close(handle)
            path.rmdir()
        raise AssertionError("the last attempt always returns")

    def request_new_folder(self) -> None:
        """Use a new folder for the next files, because there will be many."""
        self._is_slow = True

    def note_creation_time(self, seconds: float) -> None:
        """Report how long a file creation took. When they are slow on average, the next file is made in another folder."""
        self._creations += 1
        self._creating += seconds
        if self._creations >= _CREATIONS_PER_CHECK:
            self._is_slow = self._creating / self._creations > _SLOW_SECONDS
            self._creations = self._creating = 0.0

    def discard(self, staged: StagedName) -> None:
        """Delete it. In the staging area this is done later, because the owner waits for the restore."""
        if staged.path is None:
            os.unlink(staged.name, dir_fd=staged.folder)
        else:
            self._trash.append(staged.path)

    def release(self) -> None:
        """The restore has ended: what is still staged is not needed any more."""
        for path, handle in self._open:
            os.close(handle)
            self._trash.append(path)
        self._open.clear()

    def empty_trash(self) -> None:
        """Delete what was discarded. Safe to call from another thread, also during a restore."""
        while self._trash:
            try:
                path = self._trash.popleft()
            except IndexError:
                return  # another thread has taken the last one
            try:
                os.unlink(path)  # noqa: PTH108 — text, because there can be very many
            except IsADirectoryError:
                shutil.rmtree(path, ignore_errors=True)
            except FileNotFoundError:
                continue

    def close(self) -> None:
        self.release()
        self.empty_trash()


def _creation_time(folder: int) -> float:
    """The median time to create an empty file in this folder, in seconds."""
    taken = []
    for number in range(_SAMPLES):
        name = b"%d" % number
        began = time.thread_time()
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=folder))
        taken.append(time.thread_time() - began)
        os.unlink(name, dir_fd=folder)
    return sorted(taken)[_SAMPLES // 2]


def exchange_names(from_folder: int, from_name: bytes, to_folder: int, to_name: bytes) -> None:
    """Swap two names in one step. OSError ENOENT when one is missing, EINVAL when the file system does not support it."""
    _rename(from_folder, from_name, to_folder, to_name, _EXCHANGE)


def move_name(from_folder: int, from_name: bytes, to_folder: int, to_name: bytes) -> None:
    """Rename to a name that must not exist. OSError EEXIST when it exists."""
    try:
        _rename(from_folder, from_name, to_folder, to_name, _NO_REPLACE)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS):
            raise
        if has_name(to_name, to_folder):
            raise FileExistsError(errno.EEXIST, "the name exists") from error
        os.rename(from_name, to_name, src_dir_fd=from_folder, dst_dir_fd=to_folder)


def has_name(name: bytes, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _rename(from_folder: int, from_name: bytes, to_folder: int, to_name: bytes, flags: int) -> None:
    if _libc.renameat2(from_folder, from_name, to_folder, to_name, ctypes.c_uint(flags)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
