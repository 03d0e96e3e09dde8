"""Changes the owner of the persistent folders to the uid that the computer has on the host."""

import contextlib
import os
import stat
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.system_folders import contains_user_home, find_system_folder


def check_folder_is_safe(folder: Path) -> None:
    """Refuse folders of the operating system and whole home folders: the computer writes and may own its folders."""
    system = find_system_folder(folder)
    if system is not None:
        what = f"a folder of the operating system ({system})"
    elif contains_user_home(folder):
        what = "your whole home folder, which contains your keys"
    else:
        return
    raise FreeholdError(
        "computer.dangerous-folder",
        f"{folder} is {what}; a computer must not own it",
        hint="Choose another folder, such as ~/code/project",
    )


def chown_tree(folder: Path, uid: int) -> None:
    """Change the owner of the folder and its contents to `uid`. Does nothing if the folder already belongs to `uid`.

    Follows no link and stays in one file system. A file with several hard links keeps its owner, because it may also be
    in a folder outside.
    """
    check_folder_is_safe(folder)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    top = os.fstat(handle)
    if top.st_uid == uid:
        os.close(handle)
        return
    _chown_inside(handle, uid, top.st_dev)


def _chown_inside(handle: int, uid: int, device: int) -> None:
    try:
        with os.scandir(handle) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    found = entry.stat(follow_symlinks=False)
                    if found.st_dev != device:
                        continue
                    if stat.S_ISDIR(found.st_mode):
                        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                        _chown_inside(os.open(entry.name, flags, dir_fd=handle), uid, device)
                    elif found.st_nlink == 1 and found.st_uid != uid:
                        os.chown(entry.name, uid, uid, dir_fd=handle, follow_symlinks=False)
        # Last, so that an interrupted run is repeated.
        os.fchown(handle, uid, uid)
    finally:
        os.close(handle)
