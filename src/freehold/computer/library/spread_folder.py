"""A folder whose subfolders have nothing to do with each other, and come and go.

Without a journal ext4 gives no inode away again for some minutes. It looks at all that were deleted in the same part of
the disk for each new file, which took up to 0.7 ms after some thousand computers had ended. Below a folder with this
mark it puts each subfolder into a part of its own.
"""

import contextlib
import os
import struct
from fcntl import ioctl
from pathlib import Path

_GET_FLAGS, _SET_FLAGS = 0x80086601, 0x40086602
_TOP_OF_HIERARCHIES = 0x00020000
_FLAGS = struct.Struct("l")


def mark_spread(folder: Path) -> None:
    """A file system that does not know the mark is left as it is."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            (flags,) = _FLAGS.unpack(ioctl(handle, _GET_FLAGS, bytes(_FLAGS.size)))
            ioctl(handle, _SET_FLAGS, _FLAGS.pack(flags | _TOP_OF_HIERARCHIES))
        finally:
            os.close(handle)
