"""Where a restore makes its files before they are moved into place: outside the tree, where nobody inside can reach them."""

import fcntl
import os
import shutil
import struct
from pathlib import Path

from freehold.history.reading import FOLDER_FLAGS

_GET_FLAGS, _SET_FLAGS, _SPREAD = 0x80086601, 0x40086602, 0x00020000
_ROTATE = 4000


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
    """A fresh folder a restore, and another one every few thousand files; all gone at the end."""

    def __init__(self, folder: Path, token: str) -> None:
        self._folder = folder
        self._token = token
        self._made: list[Path] = []
        self._used = 0
        self._handle = -1

    @property
    def handle(self) -> int:
        if self._used % _ROTATE == 0:
            path = self._folder / f"{self._token}-{len(self._made)}"
            path.mkdir(mode=0o700)
            self._made.append(path)
            if self._handle >= 0:
                os.close(self._handle)
            self._handle = os.open(path, FOLDER_FLAGS)
        self._used += 1
        return self._handle

    def close(self) -> None:
        if self._handle >= 0:
            os.close(self._handle)
        for path in self._made:
            shutil.rmtree(path, ignore_errors=True)
