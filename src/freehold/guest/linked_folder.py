"""A folder with a link to each entry of another one, such as the skills that an agent looks for in its home.

Agents can write there: no link of theirs is followed, and what stands in the way is moved aside and never removed.
"""

# pathlib is too slow to import here
# ruff: noqa: PTH208, SIM105

from __future__ import annotations

import os

ASIDE = b".replaced"
"""Where in the base folder things are moved that stand in the way."""
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def link_entries(base: bytes, path: bytes, source: bytes) -> int:
    """Make the folder `path` below `base` have a link to each entry of `source`, and no other link into it.

    Other entries of the folder stay. Without entries no folder is made. Returns the number of links.
    """
    parts = path.split(b"/")
    if any(part in (b"", b".", b"..") for part in parts):
        raise OSError(22, "Invalid argument", path)
    names = _list_names(source)
    with _Folder(os.open(base, FOLDER)) as root:
        folder = _enter(root, parts, make=bool(names))
        if folder is None:
            return 0
        with folder:
            wanted = {name: source + b"/" + name for name in names}
            there = {name: folder.read_link(name) for name in _list_names(folder.descriptor)}
            for name, target in there.items():
                if target is not None and target.startswith(source + b"/") and name not in wanted:
                    os.unlink(name, dir_fd=folder.descriptor)
            for name, target in wanted.items():
                if there.get(name) != target:
                    folder.clear(name, root)
                    os.symlink(target, name, dir_fd=folder.descriptor)
    return len(names)


class _Folder:
    """An open folder, whatever happens to its name meanwhile."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def __enter__(self) -> _Folder:
        return self

    def __exit__(self, *_error: object) -> None:
        os.close(self.descriptor)

    def read_link(self, name: bytes) -> bytes | None:
        """None when there is no link of this name."""
        try:
            return os.readlink(name, dir_fd=self.descriptor)
        except OSError:
            return None

    def clear(self, name: bytes, root: _Folder) -> None:
        """Move what has this name out of the way. Nothing is lost."""
        kept = name + b"-" + os.urandom(4).hex().encode()
        try:
            aside = _make_folder(root, ASIDE)
        except OSError:  # something else has that name
            os.rename(ASIDE, kept, src_dir_fd=root.descriptor, dst_dir_fd=root.descriptor)
            aside = _make_folder(root, ASIDE)
        with aside:
            try:
                os.rename(name, kept, src_dir_fd=self.descriptor, dst_dir_fd=aside.descriptor)
            except FileNotFoundError:
                return


def _enter(root: _Folder, parts: list[bytes], *, make: bool) -> _Folder | None:
    """The folder below another. None when it is not there and shall not be made."""
    folder = _Folder(os.dup(root.descriptor))
    for part in parts:
        with folder:
            try:
                below = _Folder(os.open(part, FOLDER, dir_fd=folder.descriptor))
            except OSError:
                if not make:
                    return None
                folder.clear(part, root)
                below = _make_folder(folder, part)
        folder = below
    return folder


def _make_folder(above: _Folder, name: bytes) -> _Folder:
    try:
        os.mkdir(name, 0o777, dir_fd=above.descriptor)
    except FileExistsError:
        pass
    return _Folder(os.open(name, FOLDER, dir_fd=above.descriptor))


def _list_names(folder: bytes | int) -> list[bytes]:
    """Without hidden names. Empty when there is no such folder."""
    try:
        names = os.listdir(folder)
    except OSError:
        return []
    return sorted(name for name in map(os.fsencode, names) if not name.startswith(b"."))
