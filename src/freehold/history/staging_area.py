"""The staging area: where a restore makes files before they are moved into place. No program in the computer can reach it."""

import ctypes
import errno
import fcntl
import os
import secrets
import struct
import time
from collections import deque
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from freehold.history.tree_reader import FOLDER_FLAGS

TEMPORARY_PREFIX = b".freehold-restore-"
"""Names of what a restore makes begin with this."""
_GET_FLAGS, _SET_FLAGS, _SPREAD = 0x80086601, 0x40086602, 0x00020000
_PREPARING = "preparing"
_CREATIONS_PER_CHECK = 32
_SLOW_SECONDS = 0.000_15
_FAST_SECONDS = 0.000_06
_MAX_FOLDERS_TRIED = 6
_SAMPLES = 8
_NO_REPLACE, _EXCHANGE = ctypes.c_uint(1), ctypes.c_uint(2)

_renameat2 = ctypes.CDLL(None, use_errno=True).renameat2


def prepare_staging(folder: Path) -> None:
    """Make the folder, or empty it of what a killed restore left.

    ext4 searches for a free inode near the folder of a new file. Next to thousands of inodes that were just deleted (an
    `rm -rf` that is being undone) this search takes a millisecond per file. The "top of hierarchy" flag lets ext4 place
    each folder made in here elsewhere. Other file systems do not have this flag and do not need it.
    """
    if folder.is_dir():
        for path in folder.iterdir():
            _remove(str(path))
    folder.mkdir(mode=0o700, exist_ok=True)
    handle = os.open(folder, FOLDER_FLAGS)
    try:
        flags = struct.unpack("i", fcntl.ioctl(handle, _GET_FLAGS, struct.pack("i", 0)))[0]
        fcntl.ioctl(handle, _SET_FLAGS, struct.pack("i", flags | _SPREAD))
    except OSError:
        return
    finally:
        os.close(handle)


def may_hold_displaced_files(folder: Path) -> bool:
    """After a crash: whether files of the tree may be in this staging folder."""
    return folder.is_dir() and not (folder / _PREPARING).exists()


class StagedName(NamedTuple):
    """A name in a folder of the staging area, or beside the target where the staging area cannot be used."""

    folder: int
    name: bytes
    path: str | None
    """None beside the target. Text, because there can be very many."""


class StagingArea:
    """What is staged stays until it is moved or discarded, or until `release`. The caller holds the lock."""

    def __init__(self, folder: Path) -> None:
        prepare_staging(folder)
        self.folder = folder
        self._open: list[tuple[str, int]] = []
        self._trash: deque[str] = deque()

    def open_folder(self) -> tuple[str, int]:
        """The path of a new folder and a handle on it, open until `release`."""
        found = self._make_folder()
        self._open.append(found)
        return found

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

    def begin_preparing(self) -> None:
        """Files may be half written from here on, and nothing of the tree is here: a crash leaves nothing to keep."""
        (self.folder / _PREPARING).touch(mode=0o600)

    def end_preparing(self) -> None:
        """All files are whole. What is displaced from the tree may be here from now on."""
        (self.folder / _PREPARING).unlink(missing_ok=True)

    def discard(self, staged: StagedName) -> None:
        """Delete it. In the staging area this is done later, because the owner waits for the restore."""
        if staged.path is None:
            os.unlink(staged.name, dir_fd=staged.folder)
        else:
            self._trash.append(staged.path)

    def release(self) -> None:
        """The restore has ended: what is still staged is not needed any more."""
        self.end_preparing()
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
            _remove(path)

    def close(self) -> None:
        self.release()
        self.empty_trash()


class StagingLane:
    """The staging folder of one thread, used until file creation in it becomes slow, then another one.

    Threads that make files in the same folder would wait for each other.
    """

    def __init__(self, area: StagingArea) -> None:
        self._area = area
        self._folder: tuple[str, int] | None = None
        self._creations = self._creating = 0.0

    def make_name(self, name: bytes) -> StagedName:
        """A place for the next file."""
        if self._folder is None:
            self._creations = self._creating = 0.0
            self._folder = self._area.open_folder()
        path, handle = self._folder
        return StagedName(handle, name, f"{path}/{os.fsdecode(name)}")

    def request_new_folder(self) -> None:
        """Use a new folder for the next files, because there will be many."""
        self._folder = None

    def note_creation_time(self, seconds: float) -> None:
        """Report how long a file creation took. When they are slow on average, the next file is made in another folder."""
        self._creations += 1
        self._creating += seconds
        if self._creations >= _CREATIONS_PER_CHECK:
            if self._creating / self._creations > _SLOW_SECONDS:
                self._folder = None
            self._creations = self._creating = 0.0


def _remove(path: str) -> None:
    """A file, or a folder with everything in it, however deep. What cannot be removed stays until the next start."""
    with suppress(OSError):
        try:
            os.unlink(path)  # noqa: PTH108 — text, because there can be very many
        except IsADirectoryError:
            _remove_folder(path)


def _remove_folder(path: str) -> None:
    """With one open handle. No other program can move a folder of staging, so the way up is the way back."""
    handle = _open_for_removal(path, None)
    names: list[str] = []
    try:
        waiting = [_remove_files(handle)]
        while waiting[-1] or names:
            if waiting[-1]:
                names.append(waiting[-1].pop())
                handle, left = _open_for_removal(names[-1], handle), handle
                os.close(left)
                waiting.append(_remove_files(handle))
            else:
                handle, left = os.open("..", FOLDER_FLAGS, dir_fd=handle), handle
                os.close(left)
                waiting.pop()
                os.rmdir(names.pop(), dir_fd=handle)
    finally:
        os.close(handle)
    os.rmdir(path)  # noqa: PTH106 — text, because there can be very many


def _open_for_removal(name: str, folder: int | None) -> int:
    """Whatever mode it was built with."""
    os.chmod(name, 0o700, dir_fd=folder)
    return os.open(name, FOLDER_FLAGS, dir_fd=folder)


def _remove_files(folder: int) -> list[str]:
    """Returns the folders that are left in it."""
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in found:
        if not is_folder:
            os.unlink(name, dir_fd=folder)
    return [name for name, is_folder in found if is_folder]


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


def _rename(from_folder: int, from_name: bytes, to_folder: int, to_name: bytes, flags: ctypes.c_uint) -> None:
    if _renameat2(from_folder, from_name, to_folder, to_name, flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
