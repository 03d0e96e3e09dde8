"""Changes the owner of everything in a folder. Also a program: `python owner_walk.py DESCRIPTOR UID`.

As a program it does not compete for the keeper's interpreter. Standard library only: it starts in milliseconds.
"""

import os
import resource
import stat
import sys

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_LIMIT = sys.maxsize


class TooManyEntries(Exception):
    """The folder has more entries, or is deeper, than this walk was allowed to change."""


class OwnerWalk:
    """Follows no link and stays in one file system. What has the owner already is not touched.

    A file with several hard links keeps its owner, because it may also be in a folder outside.
    """

    def __init__(self, uid: int, device: int, *, max_entries: int = _NO_LIMIT, max_depth: int = _NO_LIMIT) -> None:
        self._uid = uid
        self._device = device
        self._entries_left = max_entries
        self._max_depth = max_depth

    def change(self, folder: int, depth: int = 0) -> None:
        """Raises `TooManyEntries`. The folder itself is changed last, so its owner tells whether all was done."""
        uid, device = self._uid, self._device
        with os.scandir(folder) as entries:
            for entry in entries:
                self._entries_left -= 1
                if self._entries_left < 0 or depth > self._max_depth:
                    raise TooManyEntries
                try:
                    found = entry.stat(follow_symlinks=False)
                    if found.st_dev != device:
                        continue
                    if stat.S_ISDIR(found.st_mode):
                        self._change_below(os.open(entry.name, _FOLDER, dir_fd=folder), depth + 1)
                    elif found.st_nlink == 1 and found.st_uid != uid:
                        os.chown(entry.name, uid, uid, dir_fd=folder, follow_symlinks=False)
                except FileNotFoundError:
                    continue
        if os.fstat(folder).st_uid != uid:
            os.fchown(folder, uid, uid)

    def _change_below(self, folder: int, depth: int) -> None:
        try:
            self.change(folder, depth)
        finally:
            os.close(folder)


def main(descriptor: int, uid: int) -> None:
    """Walks two descriptors and a Python frame for each level, so a deep folder needs the most that is allowed."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    sys.setrecursionlimit(1_000_000)
    OwnerWalk(uid, os.fstat(descriptor).st_dev).change(descriptor)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
