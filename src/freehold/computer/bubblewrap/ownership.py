"""Gives the persistent folders to the uid that the computer has on the host."""

import contextlib
import os
import stat
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.places import find_system_folder, holds_a_home


def refuse_to_give_away(folder: Path) -> None:
    """A computer writes its folders, and started by root it comes to own them: never the machine's, nor a whole home."""
    system = find_system_folder(folder)
    if system is not None:
        whose = f"a folder of the operating system ({system})"
    elif holds_a_home(folder):
        whose = "your whole home folder, with your keys in it"
    else:
        return
    raise FreeholdError(
        "computer.dangerous-folder",
        f"{folder} is {whose}, and a computer would own it",
        hint="Give it a folder of its own, such as ~/code/project",
    )


def claim_folder(folder: Path, uid: int) -> None:
    """Makes the folder and what is in it belong to `uid`; costs one look when it already does.

    Follows no link and leaves other file systems alone. A file with other names (hard links) elsewhere keeps its owner:
    giving it away here would give it away there, too.
    """
    refuse_to_give_away(folder)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    top = os.fstat(handle)
    if top.st_uid == uid:
        os.close(handle)
        return
    _claim_inside(handle, uid, top.st_dev)


def _claim_inside(handle: int, uid: int, device: int) -> None:
    try:
        with os.scandir(handle) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):
                    found = entry.stat(follow_symlinks=False)
                    if found.st_dev != device:
                        continue
                    if stat.S_ISDIR(found.st_mode):
                        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
                        _claim_inside(os.open(entry.name, flags, dir_fd=handle), uid, device)
                    elif found.st_nlink == 1 and found.st_uid != uid:
                        os.chown(entry.name, uid, uid, dir_fd=handle, follow_symlinks=False)
        # Last, so that an interrupted claim is taken up again.
        os.fchown(handle, uid, uid)
    finally:
        os.close(handle)
