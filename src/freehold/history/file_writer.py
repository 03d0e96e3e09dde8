"""Writes the state of one path: through directory handles, never through a symlink, each file replaced in one rename."""

import errno
import os
import secrets
import stat
import time
from collections.abc import Mapping
from pathlib import Path

from freehold.history.contents import ContentReader
from freehold.history.folder_builder import write_content
from freehold.history.model import PathVersion, RestoreStep
from freehold.history.staging_area import StagingArea, exchange_names, move_name
from freehold.history.tree_reader import FOLDER_FLAGS, StoredFile, open_path

TEMPORARY_PREFIX = b".freehold-restore-"
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

NamePath = tuple[bytes, ...]


class PathChangedError(Exception):
    """The path no longer has the recorded state. The next round records the new state and tries again."""


class FileWriter:
    """Files are made in `staging`, where no program in the computer can reach them, and moved into place.

    `trusted` has what was written and found in place afterwards, so that the next snapshot need not read it again.
    `stage_inside` is set when staging is on another mount or full; files are then made beside their target.
    `leaders` has, for each group of hard links, the path whose file is linked to.
    `owners` has the uid and gid of each root.
    """

    def __init__(self, roots: Mapping[bytes, Path], staging: StagingArea, reader: ContentReader, token: str) -> None:
        self._roots = roots
        self._staging = staging
        self._reader = reader
        self._prefix = TEMPORARY_PREFIX + token.encode() + secrets.token_hex(4).encode() + b"-"
        self._count = 0
        self.is_root = os.geteuid() == 0
        self.stage_inside = False
        self.leaders: dict[int, NamePath] = {}
        self.owners: dict[bytes, tuple[int, int]] = {}
        self.trusted: dict[int, StoredFile] = {}

    def remove(self, parent: int, step: RestoreStep) -> None:
        name = step.path[-1]
        assert step.live is not None
        if step.live.is_folder:
            try:
                os.rmdir(name, dir_fd=parent)
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    raise PathChangedError from error
                raise
            return
        folder, temporary = self.make_temporary_name(parent)
        move_name(parent, name, folder, temporary)
        if not _is_unchanged(os.stat(temporary, dir_fd=folder, follow_symlinks=False), step.live):
            move_name(folder, temporary, parent, name)
            raise PathChangedError
        self._discard(temporary, folder)

    def make_folder(self, parent: int, step: RestoreStep) -> None:
        folder, temporary = self.make_temporary_name(parent)
        os.mkdir(temporary, 0o700, dir_fd=folder)
        try:
            if self.is_root:
                os.chown(temporary, *self.owners[step.path[0]], dir_fd=folder, follow_symlinks=False)
            move_name(folder, temporary, parent, step.path[-1])
        except BaseException:
            _remove_folder_if_exists(temporary, folder)
            raise

    def write(self, parent: int, step: RestoreStep) -> None:
        """A file, a symlink, or one more name of a file that is in place already."""
        assert step.target is not None
        if step.live is not None:
            self._check_unchanged(parent, step)
        if step.target.is_link:
            self._write_symlink(parent, step, step.target)
            return
        leader = self.leaders.get(get_group(step))
        if leader is not None and leader != step.path:
            self._write_hard_link(parent, step, leader)
        elif not self._is_right_already(parent, step, step.target):
            self._write_file(parent, step, step.target)

    def set_mode_and_time(self, parent: int, step: RestoreStep) -> None:
        assert step.target is not None
        self._check_unchanged(parent, step)
        target, name = step.target, step.path[-1]
        if target.is_link:
            os.utime(name, ns=(target.mtime, target.mtime), dir_fd=parent, follow_symlinks=False)
            return
        handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
        try:
            os.fchmod(handle, stat.S_IMODE(target.mode))
            os.utime(handle, ns=(target.mtime, target.mtime))
        finally:
            os.close(handle)

    def make_temporary_name(self, parent: int) -> tuple[int, bytes]:
        """A handle on the folder for the next new file, and an unused name in it."""
        self._count += 1
        name = b"%s%d" % (self._prefix, self._count)
        return (parent if self.stage_inside else self._staging.open_folder()), name

    def _write_file(self, parent: int, step: RestoreStep, target: PathVersion) -> None:
        assert target.content is not None
        folder, temporary = self.make_temporary_name(parent)
        began = time.thread_time()
        handle = os.open(temporary, _NEW_FILE, 0o600, dir_fd=folder)
        self._staging.note_creation_time(time.thread_time() - began)
        try:
            try:
                write_content(handle, self._reader, target.content)
                if self.is_root:
                    os.fchown(handle, *self.owners[step.path[0]])
                os.fchmod(handle, stat.S_IMODE(target.mode))
                os.utime(handle, ns=(target.mtime, target.mtime))
                made = os.fstat(handle)
            finally:
                # Closed before the move: a write event under the final name then comes from another program.
                os.close(handle)
            self._swap(folder, temporary, parent, step)
        except BaseException:
            _remove_file_if_exists(temporary, folder)
            raise
        self._trust_if_unchanged(step, made, os.stat(step.path[-1], dir_fd=parent, follow_symlinks=False))

    def _write_symlink(self, parent: int, step: RestoreStep, target: PathVersion) -> None:
        assert target.content is not None
        folder, temporary = self.make_temporary_name(parent)
        os.symlink(self._reader.read(target.content), temporary, dir_fd=folder)
        try:
            if self.is_root:
                os.chown(temporary, *self.owners[step.path[0]], dir_fd=folder, follow_symlinks=False)
            os.utime(temporary, ns=(target.mtime, target.mtime), dir_fd=folder, follow_symlinks=False)
            self._swap(folder, temporary, parent, step)
        except BaseException:
            _remove_file_if_exists(temporary, folder)
            raise

    def _write_hard_link(self, parent: int, step: RestoreStep, leader: NamePath) -> None:
        root = os.open(self._roots[leader[0]], FOLDER_FLAGS)
        try:
            source = open_path(root, leader[1:-1])
        finally:
            os.close(root)
        folder, temporary = self.make_temporary_name(parent)
        try:
            if not stat.S_ISREG(os.stat(leader[-1], dir_fd=source, follow_symlinks=False).st_mode):
                raise PathChangedError
            os.link(leader[-1], temporary, src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)
            self._swap(folder, temporary, parent, step)
        finally:
            # rename() does nothing when both names are links of one file, so the temporary name can still exist.
            _remove_file_if_exists(temporary, folder)
            os.close(source)

    # Checks that no unrecorded state is lost.

    def _check_unchanged(self, parent: int, step: RestoreStep) -> None:
        """Raises PathChangedError unless the path has the state of the last snapshot."""
        live = step.live
        try:
            found = os.stat(step.path[-1], dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            if live is None or must_remove_first(step):
                return
            raise PathChangedError from None
        if live is None or live.is_folder:
            raise PathChangedError
        if not _is_unchanged(found, live) or (live.ctime and live.nlink == 1 and found.st_ctime_ns != live.ctime):
            raise PathChangedError

    def _swap(self, folder: int, temporary: bytes, parent: int, step: RestoreStep) -> None:
        """Move the staged file into place in one step, then check the displaced file once more before it is removed.

        An exchange also avoids the flush that ext4 does when a file is renamed over another one.
        """
        name = step.path[-1]
        if step.live is None or step.live.is_folder:
            move_name(folder, temporary, parent, name)
            return
        try:
            exchange_names(folder, temporary, parent, name)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOSYS):
                raise
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=parent)
            return
        if not _is_unchanged(os.stat(temporary, dir_fd=folder, follow_symlinks=False), step.live):
            exchange_names(folder, temporary, parent, name)
            raise PathChangedError
        self._discard(temporary, folder)

    @staticmethod
    def _is_right_already(parent: int, step: RestoreStep, target: PathVersion) -> bool:
        """True when only the number of hard links differed and an earlier step has corrected it."""
        live = step.live
        if live is None or (live.content, live.mode, live.mtime) != (target.content, target.mode, target.mtime):
            return False
        found = os.stat(step.path[-1], dir_fd=parent, follow_symlinks=False)
        return target.group != 0 or found.st_nlink == 1

    def _trust_if_unchanged(self, step: RestoreStep, made: os.stat_result, found: os.stat_result) -> None:
        assert step.target is not None
        if (found.st_ino, found.st_mtime_ns, found.st_size, found.st_nlink) == (
            made.st_ino,
            made.st_mtime_ns,
            made.st_size,
            1,
        ):
            self.trusted[step.place] = StoredFile(found, step.target.content, step.target.flag)

    def _discard(self, temporary: bytes, folder: int) -> None:
        if self.stage_inside:
            os.unlink(temporary, dir_fd=folder)
        else:
            self._staging.discard(temporary)


def must_remove_first(step: RestoreStep) -> bool:
    """True for a removal and for a change between a folder and anything else. All other changes are one rename."""
    if step.target is None:
        return True
    return step.live is not None and step.live.is_folder != step.target.is_folder


def get_group(step: RestoreStep) -> int:
    """The group of hard links that a written file belongs to; 0: none."""
    return step.target.group if step.target is not None and step.fate in ("write", "link") else 0


def _remove_file_if_exists(name: bytes, folder: int) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        return


def _remove_folder_if_exists(name: bytes, folder: int) -> None:
    try:
        os.rmdir(name, dir_fd=folder)
    except OSError:
        return


def _is_unchanged(found: os.stat_result, live: PathVersion) -> bool:
    return (found.st_ino, found.st_mtime_ns, found.st_mode, found.st_size) == (
        live.ino,
        live.mtime,
        live.mode,
        live.size,
    )
