"""Where a restore makes its files before they are moved into place: outside the tree, where nobody inside can reach them."""

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

from freehold.history.reading import FOLDER_FLAGS

_GET_FLAGS, _SET_FLAGS, _SPREAD = 0x80086601, 0x40086602, 0x00020000
_LOOK_AFTER = 32
_SLOW = 0.000_15
_QUICK = 0.000_06
_TRIES = 6
_SAMPLES = 8
_NO_REPLACE, _EXCHANGE = 1, 2

_libc = ctypes.CDLL(None, use_errno=True)


def prepare_staging(folder: Path) -> None:
    """Empty it of what a killed restore left.

    ext4 looks for a free inode near the folder of a new file, and next to thousands of just deleted ones (an `rm -rf`
    about to be undone) that search takes a millisecond a file. The "top of hierarchy" flag lets ext4 put each folder
    made in here somewhere else, where there is room. Other file systems know no such flag, and need none.
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


class Staging:
    """One folder for a long time; another one when it got crowded. Used under the caller's lock."""

    def __init__(self, folder: Path) -> None:
        prepare_staging(folder)
        self._folder = folder
        self._crowded = False
        self._creations = self._creating = 0.0
        self._path: Path | None = None
        self._handle = -1
        self._trash: deque[Path] = deque()

    def take_handle(self) -> int:
        """The folder in which to make the next file."""
        if self._path is None or self._crowded:
            self._leave()
            self._crowded = False
            self._creations = self._creating = 0.0
            self._path, self._handle = self._find_room()
        return self._handle

    def _find_room(self) -> tuple[Path, int]:
        """A fresh folder where making a file is quick; of several tries the first that is, else the last."""
        for left in reversed(range(_TRIES)):
            # ext4 chooses the place by the name: the same name would land beside what the last restore displaced.
            path = self._folder / secrets.token_hex(8)
            path.mkdir(mode=0o700)
            handle = os.open(path, FOLDER_FLAGS)
            if left == 0 or _creation_time(handle) < _QUICK:
                return path, handle
            os.close(handle)
            path.rmdir()
        raise AssertionError("the last try returns")

    def begin_anew(self) -> None:
        """Much is coming: make it somewhere else than the last."""
        self._crowded = True

    def took(self, seconds: float) -> None:
        """How long a creation took. Where they take long, there is a crowd of deleted inodes: elsewhere there is not."""
        self._creations += 1
        self._creating += seconds
        if self._creations >= _LOOK_AFTER:
            self._crowded = self._creating / self._creations > _SLOW
            self._creations = self._creating = 0.0

    def discard(self, name: bytes) -> None:
        """What was moved in here from the tree can go; not now, since the owner is waiting for the restore."""
        if self._path is not None:
            self._trash.append(self._path / os.fsdecode(name))

    def empty(self) -> None:
        """Take away what was discarded. Safe to call from another thread, during a restore too."""
        while self._trash:
            path = self._trash.popleft()
            try:
                path.unlink()
            except IsADirectoryError:
                shutil.rmtree(path, ignore_errors=True)
            except FileNotFoundError:
                continue

    def close(self) -> None:
        self._leave()
        self.empty()

    def _leave(self) -> None:
        if self._path is not None:
            os.close(self._handle)
            self._trash.append(self._path)
            self._path = None


def _creation_time(folder: int) -> float:
    """Seconds to make one empty file here, by the quicker half of a few."""
    taken = []
    for number in range(_SAMPLES):
        name = b"%d" % number
        began = time.thread_time()
        os.close(os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600, dir_fd=folder))
        taken.append(time.thread_time() - began)
        os.unlink(name, dir_fd=folder)
    return sorted(taken)[_SAMPLES // 2]


def exchange(from_folder: int, from_name: bytes, to_folder: int, to_name: bytes) -> None:
    """Swap two names in one step. OSError ENOENT when one is gone, EINVAL where the file system cannot."""
    _rename(from_folder, from_name, to_folder, to_name, _EXCHANGE)


def move_in(from_folder: int, from_name: bytes, to_folder: int, to_name: bytes) -> None:
    """Rename to a name that must not exist. OSError EEXIST when it does."""
    try:
        _rename(from_folder, from_name, to_folder, to_name, _NO_REPLACE)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS):
            raise
        if exists(to_name, to_folder):
            raise FileExistsError(errno.EEXIST, "the name is taken") from error
        os.rename(from_name, to_name, src_dir_fd=from_folder, dst_dir_fd=to_folder)


def exists(name: bytes, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _rename(from_folder: int, from_name: bytes, to_folder: int, to_name: bytes, flags: int) -> None:
    if _libc.renameat2(from_folder, from_name, to_folder, to_name, ctypes.c_uint(flags)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
