"""Removes a folder with hostile contents: deep nesting, unreadable folders, links."""

import contextlib
import os
import stat
from pathlib import Path

_HANDLE = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(folder: Path) -> None:
    """Remove a folder and its contents. A missing folder is no error. No program may write to it meanwhile.

    Never recurses and never follows a link: nested folders are first moved to the top, so that no depth can exhaust the
    stack, the descriptors or the length of a path.
    """
    try:
        top = _open_folder(str(folder), None)
    except FileNotFoundError:
        return
    try:
        moved = 0
        waiting = _empty(top, top, moved)
        while waiting:
            name = waiting.pop()
            inside = _open_folder(name, top)
            try:
                found = _empty(inside, top, moved)
            finally:
                os.close(inside)
            moved += len(found)
            waiting.extend(found)
            os.rmdir(name, dir_fd=top)
    finally:
        os.close(top)
    folder.rmdir()


def _empty(folder: int, top: int, moved: int) -> list[str]:
    """Unlink files and move each folder to the top. Returns the new names of the folders."""
    names: list[str] = []
    with os.scandir(folder) as entries:
        listed = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in listed:
        if not is_folder:
            os.unlink(name, dir_fd=folder)
        elif folder == top:
            names.append(name)
        else:
            place = f".freehold-removed-{moved + len(names)}-{os.getpid()}"
            # Moving a folder changes its "..", which needs the permission to write to it.
            os.close(_open_folder(name, folder))
            os.rename(name, place, src_dir_fd=folder, dst_dir_fd=top)
            names.append(place)
    return names


def _open_folder(name: str, parent: int | None) -> int:
    handle = os.open(name, _HANDLE, dir_fd=parent)
    try:
        if stat.S_IMODE(os.fstat(handle).st_mode) & 0o700 != 0o700:
            with contextlib.suppress(PermissionError):
                Path(f"/proc/self/fd/{handle}").chmod(0o700)
        return os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    finally:
        os.close(handle)
