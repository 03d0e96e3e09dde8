"""Writes what another machine sent into a folder. No link on the way is ever followed, and nothing leaves the folder."""

import contextlib
import os
import secrets
import stat
from pathlib import Path
from types import TracebackType
from typing import Self

from blake3 import blake3

from freehold.fleet.folder_state import FolderEntry

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MAX_HANDLES = 64


class CopyWriter:
    """Blocking. Files get the owner of the folder. A file is complete at its name, or not there.

    `mark` is in the names of drafts: whoever is killed and has the same one again writes over what it has left.
    """

    def __init__(self, root: Path, mark: str = "") -> None:
        self._mark = mark or secrets.token_hex(16)
        self._root = os.open(root, _FOLDER)
        found = os.fstat(self._root)
        self._owner = (found.st_uid, found.st_gid) if os.geteuid() == 0 else None
        self._handles: dict[str, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._forget_handles()
        os.close(self._root)

    def make_folder(self, entry: FolderEntry) -> None:
        """Also where one is already. Raises NotADirectoryError where something else is."""
        parent, name = self._open_parent(entry.path)
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o700, dir_fd=parent)
        self._set_folder(parent, name, entry)

    def _set_folder(self, parent: int, name: str, entry: FolderEntry) -> None:
        handle = os.open(name, _FOLDER, dir_fd=parent)
        try:
            self._own(handle)
            # Its owner can always enter it: a folder of mode 0 could not be filled.
            os.fchmod(handle, entry.mode | 0o700)
        finally:
            os.close(handle)

    def make_link(self, entry: FolderEntry) -> None:
        parent, _ = self._open_parent(entry.path)
        draft = self._draft_name(entry.path)
        try:
            os.symlink(entry.content, draft, dir_fd=parent)
        except FileExistsError:
            remove_quietly(parent, draft)
            os.symlink(entry.content, draft, dir_fd=parent)
        if self._owner is not None:
            os.chown(draft, *self._owner, dir_fd=parent, follow_symlinks=False)
        self._place(parent, draft, entry.path)

    def write_file(self, entry: FolderEntry, data: bytes) -> None:
        with self.open_file(entry) as file:
            file.write(data)
            file.complete()

    def open_file(self, entry: FolderEntry) -> "DraftFile":
        parent, _ = self._open_parent(entry.path)
        return DraftFile(self, parent, entry)

    def _open_parent(self, path: str) -> tuple[int, str]:
        """The folder above, and the name of `path` in it."""
        folder, _, _ = path.rpartition("/")
        name = self._find_name(path)
        if not folder:
            return self._root, name
        handle = self._handles.get(folder)
        if handle is None:
            if len(self._handles) >= _MAX_HANDLES:
                self._forget_handles()
            above, last = self._open_parent(folder)
            handle = self._handles[folder] = os.open(last, _FOLDER, dir_fd=above)
        return handle, name

    def _find_name(self, path: str) -> str:
        return path.rpartition("/")[2]

    def _draft_name(self, path: str) -> str:
        return f".freehold-{blake3(f'{self._mark}/{path}'.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}"

    def _forget_handles(self, below: str = "") -> None:
        for path in list(self._handles):
            if not below or path == below or path.startswith(f"{below}/"):
                os.close(self._handles.pop(path))

    def _own(self, handle: int) -> None:
        if self._owner is not None:
            os.fchown(handle, *self._owner)

    def _place(self, parent: int, draft: str, path: str) -> None:
        """What is complete gets its name."""
        os.rename(draft, self._find_name(path), src_dir_fd=parent, dst_dir_fd=parent)


class DraftFile:
    """A file that gets its name in `complete`. Without it nothing is left."""

    def __init__(self, folder: CopyWriter, parent: int, entry: FolderEntry) -> None:
        self._folder = folder
        # A handle of its own: the writer may forget the parent while a long file arrives.
        self._parent = os.dup(parent)
        self._entry = entry
        self._draft = folder._draft_name(entry.path)
        try:
            self._handle = os.open(self._draft, _NEW, 0o600, dir_fd=self._parent)
        except FileExistsError:
            remove_quietly(self._parent, self._draft)
            self._handle = os.open(self._draft, _NEW, 0o600, dir_fd=self._parent)
        self._is_complete = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._handle, view) :]

    def complete(self) -> None:
        self._folder._own(self._handle)
        os.fchmod(self._handle, self._entry.mode)
        os.utime(self._handle, ns=(self._entry.mtime, self._entry.mtime))
        self._folder._place(self._parent, self._draft, self._entry.path)
        self._is_complete = True

    def close(self) -> None:
        """Idempotent."""
        if self._handle < 0:
            return
        os.close(self._handle)
        self._handle = -1
        if not self._is_complete:
            remove_quietly(self._parent, self._draft)
        os.close(self._parent)


def remove_quietly(parent: int, name: str) -> None:
    """With everything below. Missing is no error."""
    try:
        found = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(found.st_mode):
        os.unlink(name, dir_fd=parent)
        return
    handle = os.open(name, _FOLDER, dir_fd=parent)
    try:
        with os.scandir(handle) as entries:
            names = [entry.name for entry in entries]
        for one in names:
            remove_quietly(handle, one)
    finally:
        os.close(handle)
    os.rmdir(name, dir_fd=parent)
