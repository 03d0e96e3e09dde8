"""Builds a missing folder with everything in it in staging, so that it can be moved into place in one step."""

import os
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from freehold.history.contents import ContentReader
from freehold.history.folder_handles import FolderHandles
from freehold.history.model import RestoreStep
from freehold.history.new_files import NewFiles, Owner, is_disk_full
from freehold.history.staging_area import StagedName
from freehold.history.tree_reader import WidenedModes, WrittenFile

NamePath = tuple[bytes, ...]
_SAMPLES = 16
_STEPS_PER_ADVANCE = 128
_SLOW_SECONDS = 0.000_1  # of processor time, so that a busy machine does not count


class SlowStaging(Exception):
    """Creating files is slow in this staging folder; another one may be faster. See `staging_area.prepare_staging`."""


class FolderBuilder:
    """Builds the folder `top` at `staged`. No other program can reach it until it is moved into the tree.

    `made` has the written files by place; their inodes and times stay the same when the folder is moved. `failed` has
    the paths that are missing, and the reason.
    """

    def __init__(self, top: NamePath, staged: StagedName, owner: Owner | None, *, may_move: bool) -> None:
        assert staged.path is not None, "a folder is built in the staging area"
        self._top = top
        self._name = staged.name
        self._roots = {staged.name: Path(staged.path)}
        self._owner = owner
        self._may_move = may_move
        self.made: dict[int, WrittenFile] = {}
        self.failed: dict[NamePath, str] = {}

    def build(
        self, steps: Sequence[RestoreStep], readers: Sequence[ContentReader], advance: Callable[[int], None]
    ) -> None:
        """`steps` are in path order, the folder itself first. For `readers` and `advance` see `NewFiles.write`.

        Raises SlowStaging only with `may_move`, OSError on a full disk.
        """
        folders = [step for step in steps if step.target is not None and step.target.is_folder]
        files = [step for step in steps if step.target is not None and not step.target.is_folder]
        self._make_folders(folders, advance)
        written = NewFiles()
        written.write(files, readers, self._open_destination, self._owner, advance)
        self.made = written.made
        self.failed.update(written.failed)
        self._finish_folders(folders)

    def _open_destination(self) -> "_BuiltFolders":
        return _BuiltFolders(self._roots, self._name, len(self._top), may_move=self._may_move)

    def _make_folders(self, folders: Sequence[RestoreStep], advance: Callable[[int], None]) -> None:
        destination = self._open_destination()
        try:
            for start in range(0, len(folders), _STEPS_PER_ADVANCE):
                some = folders[start : start + _STEPS_PER_ADVANCE]
                for step in some:
                    try:
                        self._make_folder(destination, step)
                    except OSError as error:
                        if is_disk_full(error):
                            raise
                        self.failed[step.path] = os.strerror(error.errno or 0)
                advance(len(some))
        finally:
            destination.close()

    def _make_folder(self, destination: "_BuiltFolders", step: RestoreStep) -> None:
        if step.path == self._top:
            top = self._roots[self._name]
            top.mkdir(mode=0o700)
            if self._owner is not None:
                os.chown(top, *self._owner, follow_symlinks=False)
            return
        parent, name = destination.locate(step)
        os.mkdir(name, 0o700, dir_fd=parent)
        if self._owner is not None:
            os.chown(name, *self._owner, dir_fd=parent, follow_symlinks=False)

    def _finish_folders(self, folders: Sequence[RestoreStep]) -> None:
        """Set modes and times last, each after what is in it, because writing into a folder changes its time."""
        destination = self._open_destination()
        try:
            for step in reversed(folders):
                if step.path in self.failed or step.target is None:
                    continue
                try:
                    handle = destination.enter(step.path)
                    os.fchmod(handle, stat.S_IMODE(step.target.mode))
                    os.utime(handle, ns=(step.target.mtime, step.target.mtime))
                except OSError as error:
                    if is_disk_full(error):
                        raise
                    self.failed[step.path] = os.strerror(error.errno or 0)
        finally:
            destination.close()


class _BuiltFolders:
    """A `Destination`: each file in the folder that was made for it. For one thread."""

    def __init__(self, roots: Mapping[bytes, Path], name: bytes, depth: int, *, may_move: bool) -> None:
        self._handles = FolderHandles(roots, WidenedModes())
        self._name = name
        self._depth = depth
        self._may_move = may_move
        self._creations = 0
        self._creating = 0.0

    def enter(self, folder: NamePath) -> int:
        """A handle on this folder of the tree, as it is in staging."""
        return self._handles.enter((self._name, *folder[self._depth :]))

    def locate(self, step: RestoreStep) -> tuple[int, bytes]:
        return self.enter(step.path[:-1]), step.path[-1]

    def note_creation_time(self, seconds: float) -> None:
        self._creations += 1
        self._creating += seconds
        if self._creations == _SAMPLES:
            if self._may_move and self._creating / _SAMPLES > _SLOW_SECONDS:
                raise SlowStaging
            self._creations, self._creating = 0, 0.0

    def close(self) -> None:
        self._handles.close()
