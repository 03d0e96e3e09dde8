"""Changes the owner of the persistent folders to the uid that the computer has on the host."""

import os
import subprocess
import sys
from pathlib import Path

from freehold.computer.walls import owner_walk
from freehold.computer.walls.owner_walk import OwnerWalk, TooManyEntries
from freehold.errors import FreeholdError
from freehold.system_folders import contains_user_home, find_system_folder

MAX_ENTRIES_HERE = 2000
"""A process costs as much time as changing so many."""
MAX_DEPTH_HERE = 100


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

    Only root can give a folder to `uid`, so no program inside can fake that. A large folder is left to a process of its
    own: see `OwnerWalk`, which says what is changed and what is not.
    """
    check_folder_is_safe(folder)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        top = os.fstat(handle)
        if top.st_uid == uid:
            return
        try:
            OwnerWalk(uid, top.st_dev, max_entries=MAX_ENTRIES_HERE, max_depth=MAX_DEPTH_HERE).change(handle)
        except TooManyEntries:
            _change_in_process(folder, handle, uid)
    finally:
        os.close(handle)


def _change_in_process(folder: Path, handle: int, uid: int) -> None:
    command = [sys.executable, "-I", "-S", owner_walk.__file__, str(handle), str(uid)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, pass_fds=[handle], check=False)
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip().rpartition("\n")[2] or f"exit code {done.returncode}"
        raise FreeholdError(
            "computer.refused",
            f"The files in {folder} cannot be given to the computer (uid {uid}): {reason}",
            hint=f"See what is wrong with that file, or do it yourself: chown -R {uid}:{uid} {folder}",
        )
