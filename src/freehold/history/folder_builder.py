"""Builds a missing folder with everything in it in staging, so that it can be moved into place in one step."""

import errno
import os
import stat
import time
from collections.abc import Callable, Sequence

from freehold.history.contents import ContentReader, DamagedContent, write_all
from freehold.history.model import PathVersion, RestoreStep
from freehold.history.tree_reader import FOLDER_FLAGS, StoredFile

NamePath = tuple[bytes, ...]
_SAMPLES = 16
_SAMPLE_EVERY = 4  # only some creations are timed: reading the clock costs as much as closing a file
_PREFETCH_STEPS = 128
_SLOW_SECONDS = 0.000_1  # of processor time, so that a busy machine does not count
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_content(handle: int, reader: ContentReader, content: int) -> None:
    """A hole stays a hole: it needs no space."""
    small = reader.take_small(content)
    if small is not None:
        write_all(handle, small)
        return
    for piece in reader.pieces(content):
        if isinstance(piece, int):
            os.ftruncate(handle, os.lseek(handle, piece, os.SEEK_CUR))
            continue
        write_all(handle, piece)


def is_disk_full(error: OSError) -> bool:
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


class SlowStaging(Exception):
    """Creating files is slow in this staging folder; another one may be faster. See `staging_area.prepare_staging`."""


class FolderBuilder:
    """Builds one folder. No other program can reach it until it is moved into the tree.

    `made` has the written files with their stat, which stays the same when the folder is moved. `failed` has the paths
    that are missing, and the reason.
    """

    def __init__(
        self, reader: ContentReader, staging: int, name: bytes, owner: tuple[int, int] | None, *, may_move: bool
    ) -> None:
        self._reader = reader
        self._staging = staging
        self._name = name
        self._owner = owner
        self._may_move = may_move
        self._creations = 0
        self._creating = 0.0
        self._open: list[tuple[NamePath, int, PathVersion]] = []
        self.made: dict[int, StoredFile] = {}
        self.failed: dict[NamePath, str] = {}

    def build(self, steps: Sequence[RestoreStep], advance: Callable[[int], None]) -> None:
        """`steps` are in path order, the folder itself first. `advance` is told how many come next. Raises SlowStaging only with `may_move`, OSError on a full disk."""
        try:
            for count, step in enumerate(steps):
                if count % _PREFETCH_STEPS == 0:
                    advance(_PREFETCH_STEPS)
                    self._prefetch(steps[count : count + _PREFETCH_STEPS])
                while self._open and step.path[:-1] != self._open[-1][0]:
                    if len(self._open) == 1:
                        break
                    self._leave()
                self._make(step)
                if self._creations == _SAMPLES * _SAMPLE_EVERY:
                    if self._may_move and self._creating / _SAMPLES > _SLOW_SECONDS:
                        raise SlowStaging
                    self._creations, self._creating = 0, 0.0
        finally:
            while self._open:
                self._leave()

    def _make(self, step: RestoreStep) -> None:
        if self._open and self._open[-1][0] != step.path[:-1]:
            self.failed[step.path] = "its folder could not be created"
            return
        try:
            self._make_in(step)
        except DamagedContent as error:
            self.failed[step.path] = error.message
        except OSError as error:
            if is_disk_full(error):
                raise
            self.failed[step.path] = os.strerror(error.errno or 0)

    def _make_in(self, step: RestoreStep) -> None:
        target = step.target
        assert target is not None
        parent, name = (self._open[-1][1], step.path[-1]) if self._open else (self._staging, self._name)
        if target.is_folder:
            os.mkdir(name, 0o700, dir_fd=parent)
            handle = os.open(name, FOLDER_FLAGS, dir_fd=parent)
            self._open.append((step.path, handle, target))
            if self._owner is not None:
                os.fchown(handle, *self._owner)
        elif target.is_link:
            assert target.content is not None
            os.symlink(self._reader.read(target.content), name, dir_fd=parent)
            if self._owner is not None:
                os.chown(name, *self._owner, dir_fd=parent, follow_symlinks=False)
            os.utime(name, ns=(target.mtime, target.mtime), dir_fd=parent, follow_symlinks=False)
        else:
            self._make_file(parent, name, step.place, target)

    def _make_file(self, parent: int, name: bytes, place: int, target: PathVersion) -> None:
        assert target.content is not None
        handle = self._create(parent, name, target.mode & 0o777)
        try:
            write_content(handle, self._reader, target.content)
            if self._owner is not None:
                os.fchown(handle, *self._owner)
            os.utime(handle, ns=(target.mtime, target.mtime))
            found = os.fstat(handle)
            if found.st_mode != target.mode:
                os.fchmod(handle, stat.S_IMODE(target.mode))
                found = os.fstat(handle)
            self.made[place] = StoredFile(found, target.content, target.flag)
        except BaseException:
            os.unlink(name, dir_fd=parent)
            raise
        finally:
            os.close(handle)

    def _create(self, parent: int, name: bytes, mode: int) -> int:
        self._creations += 1
        if self._creations % _SAMPLE_EVERY:
            return os.open(name, _NEW_FILE, mode, dir_fd=parent)
        began = time.thread_time()
        handle = os.open(name, _NEW_FILE, mode, dir_fd=parent)
        self._creating += time.thread_time() - began
        return handle

    def _prefetch(self, steps: Sequence[RestoreStep]) -> None:
        """Read the small contents of many steps in one query."""
        self._reader.prefetch(
            [step.target.content for step in steps if step.target and step.target.content is not None]
        )

    def _leave(self) -> None:
        """Set the mode and time of a folder last, because writing into it changes its time."""
        _, handle, target = self._open.pop()
        try:
            os.fchmod(handle, stat.S_IMODE(target.mode))
            os.utime(handle, ns=(target.mtime, target.mtime))
        finally:
            os.close(handle)
