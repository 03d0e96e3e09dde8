"""Gives the persistent folders to the uid that the computer has on the host."""

import contextlib
import os
import stat
from pathlib import Path


def claim_folder(folder: Path, uid: int) -> None:
    """Makes the folder and what is in it belong to `uid`; costs one look when it already does.

    Follows no link. A file with other names (hard links) elsewhere keeps its owner: giving it away here would give it
    away there, too.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    if os.fstat(handle).st_uid == uid:
        os.close(handle)
        return
    _claim_inside(handle, uid)


def _claim_inside(handle: int, uid: int) -> None:
    try:
        with os.scandir(handle) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    found = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(found.st_mode):
                        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                        _claim_inside(os.open(entry.name, flags, dir_fd=handle), uid)
                    elif found.st_nlink == 1 and found.st_uid != uid:
                        os.chown(entry.name, uid, uid, dir_fd=handle, follow_symlinks=False)
        # Last, so that an interrupted claim is taken up again.
        os.fchown(handle, uid, uid)
    finally:
        os.close(handle)
