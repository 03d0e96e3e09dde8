"""Writes what a computer has changed into the folder here. A node that is lost meanwhile costs at most what is new.

A new name is there as soon as its content has arrived. What replaces or removes something waits for `finish`: a file
may have been moved, and what it held may still be on its way, under another name.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from freehold.fleet.copy_writer import CopyWriter, remove_quietly
from freehold.fleet.folder_state import FolderEntry, is_skipped

_IN_USE = (errno.ENOTEMPTY, errno.EEXIST, errno.EBUSY)


class ChangeWriter(CopyWriter):
    """`base` is what the folder here and the one on the node had in common. Without `finish` only new names are added.

    No folder is removed that is not empty: what is left in it is of this machine.
    """

    def __init__(self, root: Path, base: Mapping[str, FolderEntry], mark: str = "") -> None:
        super().__init__(root, mark)
        self._base = base
        self._drafts: dict[str, str] = {}
        """Files and links that are complete and wait for their names."""
        self._new_folders: dict[str, str] = {}
        """Folders that replace something else, and are filled beside it."""
        self.blocked: set[str] = set()
        """What has no place, as there is a folder with files of this machine."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for path, draft in (self._drafts | self._new_folders).items():
            with contextlib.suppress(OSError):
                remove_quietly(self._open_parent(path)[0], draft)
        super().__exit__(kind, error, trace)

    def make_folder(self, entry: FolderEntry) -> None:
        parent, name = self._open_parent(entry.path)
        if _find_mode(parent, name) is None or _is_folder(parent, name):
            super().make_folder(entry)
            return
        draft = self._draft_name(entry.path)
        remove_quietly(parent, draft)
        os.mkdir(draft, 0o700, dir_fd=parent)
        self._new_folders[entry.path] = draft
        self._set_folder(parent, draft, entry)

    def ensure_folder(self, entry: FolderEntry) -> None:
        """One that has not changed there. If it is here too it is left as it is."""
        if not _is_folder(*self._open_parent(entry.path)):
            self.make_folder(entry)

    def finish(
        self, removed: Sequence[FolderEntry], links: Sequence[FolderEntry], missing: Collection[str]
    ) -> set[str]:
        """When everything has arrived but the contents that are `missing`: what held one of them stays as it was.

        Returns all names that stay as they were.
        """
        needed = {path for path, entry in self._base.items() if entry.kind == "file" and entry.content in missing}
        kept = self._remove_all(removed, needed)
        for path in list(self._new_folders):
            if path in needed:
                kept.add(path)
            else:
                self._swap_folder(path)
        for entry in links:
            self.make_link(entry)
        for path in list(self._drafts):
            if path in needed:
                kept.add(path)
            elif not is_skipped(path, kept) and not self._swap(path):
                kept.add(path)
                self.blocked.add(path)
        return kept

    def _remove_all(self, removed: Sequence[FolderEntry], needed: Collection[str]) -> set[str]:
        """But what is `needed`, and the folders above it."""
        kept: set[str] = set()
        above: set[str] = set()
        for entry in sorted(removed, reverse=True):
            if entry.path in needed or entry.path in above:
                kept.add(entry.path)
                above.add(entry.path.rpartition("/")[0])
            else:
                self._remove(entry)
        return kept

    def _remove(self, entry: FolderEntry) -> None:
        """It may be gone, or may have become something else here, which stays."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
            parent, name = self._open_parent(entry.path)
            if entry.kind == "folder":
                self._forget_handles(entry.path)
                _remove_empty(parent, name)
            else:
                os.unlink(name, dir_fd=parent)

    def _find_name(self, path: str) -> str:
        return self._new_folders.get(path) or super()._find_name(path)

    def _place(self, parent: int, draft: str, path: str) -> None:
        if path not in self._base:
            with contextlib.suppress(IsADirectoryError):
                super()._place(parent, draft, path)
                return
        self._drafts[path] = draft

    def _swap_folder(self, path: str) -> None:
        parent, draft = self._open_parent(path)
        del self._new_folders[path]
        name = self._find_name(path)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=parent)
        os.rename(draft, name, src_dir_fd=parent, dst_dir_fd=parent)

    def _swap(self, path: str) -> bool:
        """Whether the draft has its name now."""
        parent, _ = self._open_parent(path)
        draft = self._drafts[path]
        try:
            super()._place(parent, draft, path)
        except IsADirectoryError:
            self._forget_handles(path)
            if not _remove_empty(parent, self._find_name(path)):
                return False
            super()._place(parent, draft, path)
        del self._drafts[path]
        return True


def _remove_empty(parent: int, name: str) -> bool:
    """Whether it could be removed."""
    try:
        os.rmdir(name, dir_fd=parent)
    except OSError as error:
        if error.errno not in _IN_USE:
            raise
        return False
    return True


def _find_mode(parent: int, name: str) -> int | None:
    try:
        return os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None


def _is_folder(parent: int, name: str) -> bool:
    mode = _find_mode(parent, name)
    return mode is not None and stat.S_ISDIR(mode)
