"""Writes the state of one path: through directory handles, never through a symlink, each file replaced in one rename."""

import errno
import itertools
import os
import secrets
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from freehold.history.contents import ContentReader
from freehold.history.model import PathVersion, RestoreStep
from freehold.history.new_files import Owner, write_content
from freehold.history.set_aside import PART_SUFFIX, SetAside, name_beside
from freehold.history.staged_files import StagedFiles
from freehold.history.staging_area import (
    TEMPORARY_PREFIX,
    StagedName,
    StagingArea,
    StagingLane,
    exchange_names,
    move_name,
)
from freehold.history.tree_reader import FOLDER_FLAGS, TrustedFiles, WrittenFile, open_path, set_file_mode

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NO_EXCHANGE = (errno.EINVAL, errno.ENOSYS)

NamePath = tuple[bytes, ...]


class PathChangedError(Exception):
    """The path no longer has the recorded state. The next round records the new state and tries again."""


class FileWriter:
    """Files are made in `staging`, where no program in the computer can reach them, and moved into place.

    What stands in their place and is not stored in history goes to `aside`. With `force`, so does what was changed since
    it was recorded; without it, PathChangedError is raised and the path is as it was.

    `written` gets what was written and found in place afterwards: files, and the group of each inode that was made.
    `inside` has the roots for which staging cannot be used, because it is on another mount: their files are made beside
    their targets. `leaders` has, for each group of hard links, the path whose file is linked to. `owners` has the uid
    and gid of each root.
    """

    def __init__(
        self,
        roots: Mapping[bytes, Path],
        staging: StagingArea,
        reader: ContentReader,
        aside: SetAside,
        token: str,
        written: TrustedFiles,
        *,
        force: bool,
    ) -> None:
        self._roots = roots
        self._staging = staging
        self._reader = reader
        self._aside = aside
        self._written = written
        self._force = force
        self._prefix = TEMPORARY_PREFIX + token.encode() + secrets.token_hex(4).encode() + b"-"
        self._lane = StagingLane(staging)
        self._numbers = itertools.count(1)
        self._staged = StagedFiles(staging, self._prefix, self._numbers)
        self._leader_folder: tuple[NamePath, int] | None = None
        self.is_root = os.geteuid() == 0
        self.inside: set[bytes] = set()
        self.leaders: dict[int, NamePath] = {}
        self.owners: dict[bytes, tuple[int, int]] = {}

    # Staging: nothing in the tree changes.

    def stage_files(
        self, steps: Sequence[RestoreStep], readers: Sequence[ContentReader], advance: Callable[[int], None]
    ) -> dict[NamePath, str]:
        """Make the new files and symlinks of these steps in staging. For `readers` and `advance` see `NewFiles.write`.

        Returns the paths that could not be made, with the reason. OSError ENOSPC when the disk is full.
        """
        new = [step for step in steps if self._needs_new_file(step)]
        failed: dict[NamePath, str] = {}
        for root in {step.path[0] for step in new}:
            some = [step for step in new if step.path[0] == root]
            failed.update(self._staged.make(some, readers, self.get_owner(root), advance))
        return failed

    def get_owner(self, root: bytes) -> Owner | None:
        """The owner to set on new files; None when they have it by themselves."""
        return self.owners[root] if self.is_root and self.owners[root] != (0, 0) else None

    def _needs_new_file(self, step: RestoreStep) -> bool:
        target = step.target
        if target is None or step.fate not in ("write", "link") or step.path[0] in self.inside:
            return False
        if self._needs_only_links(step):
            return False
        return target.is_link or self.leaders.get(get_group(step), step.path) == step.path

    def _take_staged(self, parent: int, step: RestoreStep) -> tuple[StagedName, WrittenFile | None]:
        found = self._staged.take(step)
        if found is not None and step.path[0] not in self.inside:
            return found
        assert step.target is not None
        if step.target.is_folder:
            return self._make_folder(parent, step), None
        if step.target.is_link:
            return self._make_symlink(parent, step, step.target), None
        return self._make_file(parent, step, step.target)

    def make_temporary_name(self, parent: int, root: bytes) -> StagedName:
        """The folder for the next new file, and an unused name in it."""
        name = b"%s%d" % (self._prefix, next(self._numbers))
        return StagedName(parent, name, None) if root in self.inside else self._lane.make_name(name)

    def begin_folder(self) -> None:
        """Many files come next: they get a staging folder of their own."""
        self._lane.request_new_folder()

    def _make_folder(self, parent: int, step: RestoreStep) -> StagedName:
        staged = self.make_temporary_name(parent, step.path[0])
        os.mkdir(staged.name, 0o700, dir_fd=staged.folder)
        if self.is_root:
            os.chown(staged.name, *self.owners[step.path[0]], dir_fd=staged.folder, follow_symlinks=False)
        return staged

    def _make_symlink(self, parent: int, step: RestoreStep, target: PathVersion) -> StagedName:
        assert target.content is not None
        staged = self.make_temporary_name(parent, step.path[0])
        os.symlink(self._reader.read(target.content), staged.name, dir_fd=staged.folder)
        if self.is_root:
            os.chown(staged.name, *self.owners[step.path[0]], dir_fd=staged.folder, follow_symlinks=False)
        os.utime(staged.name, ns=(target.mtime, target.mtime), dir_fd=staged.folder, follow_symlinks=False)
        return staged

    def _make_file(self, parent: int, step: RestoreStep, target: PathVersion) -> tuple[StagedName, WrittenFile]:
        assert target.content is not None
        staged = self.make_temporary_name(parent, step.path[0])
        part = staged.name + PART_SUFFIX
        began = time.thread_time()
        handle = os.open(part, _NEW_FILE, 0o600, dir_fd=staged.folder)
        self._lane.note_creation_time(time.thread_time() - began)
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
            os.rename(part, staged.name, src_dir_fd=staged.folder, dst_dir_fd=staged.folder)
        except BaseException:
            _remove_file_if_exists(part, staged.folder)
            raise
        return staged, WrittenFile(made.st_ino, made.st_ctime_ns, target)

    # Changes of the tree.

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
        away = self._make_away_name(parent, step)
        move_name(parent, name, away.folder, away.name)
        self._let_go(away, parent, step)

    def make_folder(self, parent: int, step: RestoreStep) -> None:
        staged, _ = self._take_staged(parent, step)
        try:
            move_name(staged.folder, staged.name, parent, step.path[-1])
        except BaseException:
            _remove_folder_if_exists(staged.name, staged.folder)
            raise

    def write(self, parent: int, step: RestoreStep) -> None:
        """A file, a symlink, or one more name of a file that is in place already."""
        target = step.target
        assert target is not None
        if step.live is not None:
            self._check_unchanged(parent, step)
        leader = self.leaders.get(get_group(step), step.path)
        if leader != step.path:
            self._write_hard_link(parent, step, leader)
        elif not self._is_right_already(parent, step, target):
            staged, made = self._take_staged(parent, step)
            self._swap(staged, parent, step)
            if made is not None:
                self._note_written(step, made, os.stat(step.path[-1], dir_fd=parent, follow_symlinks=False))

    def set_mode_and_time(self, parent: int, step: RestoreStep) -> None:
        assert step.target is not None
        target, name = step.target, step.path[-1]
        if target.group and self._has_state(parent, step, target):
            return  # set through another name of this file
        self._check_unchanged(parent, step)
        if target.is_link:
            os.utime(name, ns=(target.mtime, target.mtime), dir_fd=parent, follow_symlinks=False)
        else:
            set_file_mode(parent, name, stat.S_IMODE(target.mode), target.mtime)

    def _write_hard_link(self, parent: int, step: RestoreStep, leader: NamePath) -> None:
        source = self._open_leader_folder(leader[:-1])
        staged = self.make_temporary_name(parent, step.path[0])
        if not stat.S_ISREG(os.stat(leader[-1], dir_fd=source, follow_symlinks=False).st_mode):
            raise PathChangedError
        os.link(leader[-1], staged.name, src_dir_fd=source, dst_dir_fd=staged.folder, follow_symlinks=False)
        self._swap(staged, parent, step)

    def _open_leader_folder(self, path: NamePath) -> int:
        """The last one stays open, because many names may link to the same file."""
        if self._leader_folder is None or self._leader_folder[0] != path:
            self.close()
            root = os.open(self._roots[path[0]], FOLDER_FLAGS)
            try:
                self._leader_folder = (path, open_path(root, path[1:]))
            finally:
                os.close(root)
        return self._leader_folder[1]

    def close(self) -> None:
        if self._leader_folder is not None:
            os.close(self._leader_folder[1])
            self._leader_folder = None

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
        if live is None or live.is_folder or stat.S_ISDIR(found.st_mode):
            raise PathChangedError
        if self._force:
            return  # `_swap` sets it aside
        if not _is_unchanged(found, live) or (live.ctime and live.nlink == 1 and found.st_ctime_ns != live.ctime):
            raise PathChangedError

    def _swap(self, staged: StagedName, parent: int, step: RestoreStep) -> None:
        """Move the staged file into place in one step; what it displaces is checked once more before it is discarded.

        An exchange also avoids the flush that ext4 does when a file is renamed over another one.
        """
        name = step.path[-1]
        if step.live is None or step.live.is_folder:
            self._move_in(staged, parent, step)
            return
        away = staged
        try:
            if step.live.is_noted_only:
                # It goes at once to where it is kept, so that a crash cannot lose it.
                away = self._make_away_name(parent, step)
                move_name(staged.folder, staged.name, away.folder, away.name)
            exchange_names(away.folder, away.name, parent, name)
        except OSError as error:
            if error.errno not in _NO_EXCHANGE:
                _remove_file_if_exists(away.name, away.folder)
                raise
            staged, away = away, self._make_away_name(parent, step)
            move_name(parent, name, away.folder, away.name)
            self._move_in(staged, parent, step)
        self._let_go(away, parent, step)

    def _move_in(self, staged: StagedName, parent: int, step: RestoreStep) -> None:
        """To a name that should be free. With `force`, what was made there since is set aside."""
        try:
            move_name(staged.folder, staged.name, parent, step.path[-1])
        except FileExistsError:
            if not self._force:
                _remove_file_if_exists(staged.name, staged.folder)
                raise
            exchange_names(staged.folder, staged.name, parent, step.path[-1])
            self._aside.keep(staged, step.path)
        except OSError:
            _remove_file_if_exists(staged.name, staged.folder)
            raise

    def _make_away_name(self, parent: int, step: RestoreStep) -> StagedName:
        """Where the file that stands in the way goes: to the trash, or to where it is kept when history does not have it."""
        assert step.live is not None
        if not step.live.is_noted_only:
            return self.make_temporary_name(parent, step.path[0])
        if step.path[0] in self.inside:
            return name_beside(parent, step.path[-1])
        return self._aside.make_name(step.path)

    def _let_go(self, away: StagedName, parent: int, step: RestoreStep) -> None:
        """Discard what was displaced, keep it when history does not have it, or put it back when it was changed since.

        When its name is taken again in the meantime, or with `force`, it is set aside: it is never lost and never left
        in staging.
        """
        assert step.live is not None
        found = os.stat(away.name, dir_fd=away.folder, follow_symlinks=False)
        unchanged = _is_unchanged(found, step.live)
        if step.live.is_noted_only and (unchanged or self._force):
            self._note_kept(away, step)
        elif unchanged:
            self._staging.discard(away)
        elif self._force or not self._put_back(away, parent, step):
            self._aside.keep(away, step.path)
        else:
            raise PathChangedError

    def _put_back(self, away: StagedName, parent: int, step: RestoreStep) -> bool:
        """Whether the displaced file is at its name again. What the restore had put there is discarded."""
        name = step.path[-1]
        with suppress(OSError):
            if step.target is not None and not must_remove_first(step):
                exchange_names(away.folder, away.name, parent, name)
                self._staging.discard(away)
                return True
        with suppress(OSError):
            move_name(away.folder, away.name, parent, name)
            return True
        return False

    def _note_kept(self, away: StagedName, step: RestoreStep) -> None:
        if away.path is None:
            self._aside.note(step.path, away._replace(path=os.fsdecode(b"/".join((*step.path[:-1], away.name)))))
        else:
            self._aside.note(step.path, away)

    @staticmethod
    def _has_state(parent: int, step: RestoreStep, target: PathVersion) -> bool:
        found = os.stat(step.path[-1], dir_fd=parent, follow_symlinks=False)
        return step.live is not None and _is_unchanged(found, target._replace(ino=step.live.ino))

    @staticmethod
    def _needs_only_links(step: RestoreStep) -> bool:
        live, target = step.live, step.target
        if live is None or target is None:
            return False
        return (live.content, live.mode, live.mtime) == (target.content, target.mode, target.mtime)

    def _is_right_already(self, parent: int, step: RestoreStep, target: PathVersion) -> bool:
        """True when only the number of hard links differed and an earlier step has corrected it."""
        if not self._needs_only_links(step):
            return False
        found = os.stat(step.path[-1], dir_fd=parent, follow_symlinks=False)
        if target.group:
            self._written.nodes[found.st_ino] = target.group
        return target.group != 0 or found.st_nlink == 1

    def _note_written(self, step: RestoreStep, made: WrittenFile, found: os.stat_result) -> None:
        target = made.target
        if (found.st_ino, found.st_mtime_ns, found.st_size) != (made.ino, target.mtime, target.size):
            return
        if target.group:
            self._written.nodes[found.st_ino] = target.group
        elif found.st_nlink == 1:
            self._written.files[step.place] = WrittenFile(found.st_ino, found.st_ctime_ns, target)


def must_remove_first(step: RestoreStep) -> bool:
    """True for a removal and for a change between a folder and anything else. All other changes are one rename."""
    if step.target is None:
        return True
    return step.live is not None and step.live.is_folder != step.target.is_folder


def get_group(step: RestoreStep) -> int:
    """The group of hard links that a written file belongs to; 0: none."""
    return step.target.group if step.target is not None and step.target.node and step.fate in ("write", "link") else 0


def _remove_file_if_exists(name: bytes, folder: int) -> None:
    with suppress(OSError):
        os.unlink(name, dir_fd=folder)


def _remove_folder_if_exists(name: bytes, folder: int) -> None:
    with suppress(OSError):
        os.rmdir(name, dir_fd=folder)


def _is_unchanged(found: os.stat_result, live: PathVersion) -> bool:
    return (found.st_ino, found.st_mtime_ns, found.st_mode, found.st_size) == (
        live.ino,
        live.mtime,
        live.mode,
        live.size,
    )
