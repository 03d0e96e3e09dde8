"""Files that a restore moves out of its way because history cannot bring them back. They are kept until the owner deletes them."""

import errno
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from blake3 import blake3

from freehold.history.contents import ContentReader
from freehold.history.entries import EntryLog
from freehold.history.model import EntryKind
from freehold.history.staging_area import (
    TEMPORARY_PREFIX,
    StagedName,
    has_name,
    may_hold_displaced_files,
    move_name,
)
from freehold.history.tree_reader import FOLDER_FLAGS

NamePath = tuple[bytes, ...]
PART_SUFFIX = b".part"
"""A staged file that is not complete has this suffix: after a crash it can be deleted without a look at its content."""
_MAX_NAME = 255
_MAX_TRIES = 1000


class KeptFile(NamedTuple):
    """Where the file that stood at `path` is now."""

    path: bytes
    kept_as: Path


class SetAside:
    """The kept files of one restore: one folder, in which each file has the path that it had."""

    def __init__(self, base: Path, kind: EntryKind, token: str) -> None:
        self.base = base
        self._name = f"{time.strftime('%Y-%m-%dT%H.%M.%S')}-{kind}-{token[:6]}"
        self._open: tuple[NamePath, int] | None = None
        self._kept: dict[NamePath, KeptFile] = {}

    @property
    def files(self) -> tuple[KeptFile, ...]:
        return tuple(self._kept.values())

    def make_name(self, path: NamePath) -> StagedName:
        """A free name for the file at `path`. Call `note` when the file is there.

        Its folder stays open until a name in another folder is made.
        """
        folder = self._open_folder(path[:-1])
        name = path[-1]
        for number in range(2, _MAX_TRIES):
            if not has_name(name, folder):
                where = self.base / self._name / os.fsdecode(b"/".join((*path[:-1], name)))
                return StagedName(folder, name, str(where))
            name = path[-1][: _MAX_NAME - 6] + b".%d" % number
        raise FileExistsError(errno.EEXIST, "too many files were set aside")

    def note(self, path: NamePath, kept: StagedName) -> None:
        assert kept.path is not None
        self._kept[path] = KeptFile(b"/".join(path), Path(kept.path))

    def keep(self, staged: StagedName, path: NamePath) -> None:
        """Move what was staged from `path` here, because its name is taken again."""
        kept = self.make_name(path)
        try:
            move_name(staged.folder, staged.name, kept.folder, kept.name)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            kept = name_beside(staged.folder, path[-1])
            move_name(staged.folder, staged.name, kept.folder, kept.name)
            self._kept[path] = KeptFile(b"/".join(path), Path(os.fsdecode(b"/".join((*path[:-1], kept.name)))))
            return
        self.note(path, kept)

    def salvage(self, folder: Path, is_stored: Callable[[bytes], bool]) -> None:
        """After a crash: keep the files in this folder of which history does not have the content, delete the others."""
        for path in [path for path in folder.iterdir() if path.is_symlink() or path.is_file()]:
            name = os.fsencode(path.name)
            is_whole = name.startswith(TEMPORARY_PREFIX) and not name.endswith(PART_SUFFIX)
            if is_whole and not is_stored(_hash_file(path)):
                handle = os.open(folder, FOLDER_FLAGS)
                try:
                    self.keep(StagedName(handle, name, str(path)), (b"found-after-a-crash", name))
                finally:
                    os.close(handle)

    def close(self) -> None:
        """Close its handles, and remove folders that were made for nothing."""
        self._close_folder()
        for folder, _, _ in os.walk(self.base / self._name, topdown=False):
            with suppress(OSError):
                Path(folder).rmdir()
        with suppress(OSError):
            self.base.rmdir()

    def _open_folder(self, parts: NamePath) -> int:
        """The folder with this path below the folder of this restore; it is made where it is missing."""
        if self._open is not None and self._open[0] == parts:
            return self._open[1]
        self._close_folder()
        self.base.mkdir(mode=0o700, exist_ok=True)
        handle = os.open(self.base, FOLDER_FLAGS)
        for part in (os.fsencode(self._name), *parts):
            try:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o700, dir_fd=handle)
                inner = os.open(part, FOLDER_FLAGS, dir_fd=handle)
            finally:
                os.close(handle)
            handle = inner
        self._open = (parts, handle)
        return handle

    def _close_folder(self) -> None:
        if self._open is not None:
            os.close(self._open[1])
            self._open = None


def salvage_staging(staging: Path, base: Path, entries: EntryLog, reader: ContentReader) -> None:
    """What an interrupted restore had displaced and history does not have is set aside before staging is emptied."""
    found = entries.read_intent()
    if found is None or not may_hold_displaced_files(staging):
        return
    aside = SetAside(base, found[0].kind, found[1])
    for folder in staging.iterdir():
        aside.salvage(folder, reader.has_content)
    aside.close()


def _hash_file(path: Path) -> bytes:
    """As `contents` hashes it. Of a file that cannot be read, nothing that any content has."""
    if path.is_symlink():
        return blake3(os.fsencode(path.readlink())).digest()
    try:
        return blake3().update_mmap(path).digest()
    except OSError:
        return b""


def name_beside(folder: int, name: bytes) -> StagedName:
    """A free name in the same folder, where the folder of history is on another file system."""
    for number in range(1, _MAX_TRIES):
        free = name[: _MAX_NAME - 20] + b".set-aside-%d" % number
        if not has_name(free, folder):
            return StagedName(folder, free, None)
    raise FileExistsError(errno.EEXIST, "too many files were set aside")


def measure_set_aside(base: Path) -> int:
    """Bytes in all files that were set aside."""
    total = 0
    for folder, _, names in os.walk(base):
        for name in names:
            try:
                total += Path(folder, name).lstat().st_blocks * 512
            except FileNotFoundError:
                continue  # the owner deletes them just now
    return total
