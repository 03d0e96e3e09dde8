"""Carries out a restore plan. No step follows a symlink, and nothing that history does not have is overwritten.

Everything new is made in staging first, so that a disk that fills up is found before the first file changes.
"""

import errno
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from freehold.history.contents import ContentReader, DamagedContent
from freehold.history.file_writer import FileWriter, PathChangedError, get_group, must_remove_first
from freehold.history.folder_builder import FolderBuilder, SlowStaging
from freehold.history.folder_handles import FolderHandles
from freehold.history.model import PathVersion, RestoreStep
from freehold.history.new_files import is_disk_full
from freehold.history.restore_control import RestoreControl
from freehold.history.set_aside import SetAside
from freehold.history.slices import sort_in_slices
from freehold.history.staging_area import StagedName, StagingArea, move_name
from freehold.history.states import Places
from freehold.history.tree_reader import TrustedFiles, WidenedModes

CHANGED_MEANWHILE = "it was changed during the restore"
_STEPS_PER_PUMP = 500
_MANY_STEPS = 200
_MAX_BUILDS = 4
_STEPS_PER_THREAD = 400
_MAX_THREADS = 2
_CHANGED_ERRORS = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.ELOOP, errno.EISDIR, errno.ENOTEMPTY})

NamePath = tuple[bytes, ...]
Action = Callable[[int, RestoreStep], None]


class BuiltFolder(NamedTuple):
    """A folder that is missing in the tree and was built as a whole in staging."""

    top: RestoreStep
    steps: Sequence[RestoreStep]
    staged: StagedName
    builder: FolderBuilder


class RestoreContext(NamedTuple):
    """What all rounds of one restore share. `pump` is called regularly, so that the watcher can read its events.

    `open_reader` opens one more reader, for another thread. `free_space` is called when a rename needs space on a full
    disk.
    """

    roots: Mapping[bytes, Path]
    staging: StagingArea
    reader: ContentReader
    open_reader: Callable[[], ContentReader]
    places: Places
    aside: SetAside
    token: str
    target: int
    control: RestoreControl
    pump: Callable[[], None]
    free_space: Callable[[], None]


class Restorer:
    """One round of a restore: `stage_steps`, then `apply_steps`. `failed` has each path that does not have the planned state.

    With `force`, what was changed since it was recorded is set aside instead of left in place. `written` gets what was
    written, so that the next snapshot need not read it again.
    """

    def __init__(
        self, context: RestoreContext, steps: Sequence[RestoreStep], written: TrustedFiles, *, force: bool
    ) -> None:
        self._context = context
        self._work = [step for step in steps if step.fate != "keep"]
        self._written = written
        self._writer = FileWriter(
            context.roots, context.staging, context.reader, context.aside, context.token, written, force=force
        )
        self._modes = WidenedModes()
        self._handles = FolderHandles(context.roots, self._modes)
        self._more_readers: list[ContentReader] = []
        self._folders: list[BuiltFolder] = []
        self._single: list[RestoreStep] = []
        self._built: set[NamePath] = set()
        self._touched: dict[NamePath, None] = {}
        self.failed: dict[NamePath, str] = {}

    def __enter__(self) -> "Restorer":
        return self

    def __exit__(self, *_: object) -> None:
        self._handles.close()
        self._writer.close()
        for reader in self._more_readers:
            reader.close()
        self._modes.put_back()
        self._context.staging.release()

    # Staging: nothing in the tree changes.

    def stage_steps(self) -> None:
        """Make everything new in staging. Raises OSError when the disk is full, and when it is cancelled.

        Nothing has changed then.
        """
        self._context.control.enter("preparing", len(self._work))
        self._context.staging.begin_preparing()
        self._find_owners()
        self._choose_leaders(self._work)
        self._stage_folders()
        files = [step for step in self._single if len(step.path) > 1]
        self.failed.update(self._writer.stage_files(files, self._choose_readers(len(files)), self._advance))

    def _find_owners(self) -> None:
        """The owner of each root, and whether its files can be made in staging, which must be on the same file system."""
        device = self._context.staging.folder.stat().st_dev
        for name in {step.path[0] for step in self._work}:
            root = self._context.roots[name]
            try:
                found = root.lstat()
            except FileNotFoundError:
                found = root.parent.stat()
            self._writer.owners[name] = (found.st_uid, found.st_gid)
            if found.st_dev != device:
                self._writer.inside.add(name)
                needed = sum(_count_new_bytes(step) for step in self._work if step.path[0] == name)
                disk = os.statvfs(root.parent)
                if needed > disk.f_bavail * disk.f_frsize:
                    raise OSError(errno.ENOSPC, "the files do not fit on the disk")

    def _stage_folders(self) -> None:
        """Build each missing folder as a whole. The steps that are left are in `_single`."""
        work = self._work
        at = 0
        while at < len(work):
            top, start = work[at], at
            at += 1
            if top.fate != "folder" or len(top.path) == 1 or top.path[0] in self._writer.inside:
                self._single.append(top)
                continue
            while at < len(work) and work[at].path[: len(top.path)] == top.path:
                at += 1
            inside = work[start:at]
            self._folders.append(self._build_folder(top, [step for step in inside if not get_group(step)]))
            self._single.extend(step for step in inside if get_group(step))

    def _build_folder(self, top: RestoreStep, steps: Sequence[RestoreStep]) -> BuiltFolder:
        """The folder in staging. When file creation is slow there, it is built again in another staging folder."""
        staging, control = self._context.staging, self._context.control
        before = control.progress.done
        for left in reversed(range(_MAX_BUILDS)):
            if len(steps) > _MANY_STEPS:
                self._writer.begin_folder()
            staged = self._writer.make_temporary_name(-1, top.path[0])
            builder = FolderBuilder(
                top.path,
                staged,
                self._writer.get_owner(top.path[0]),
                may_move=left > 0 and len(steps) > _MANY_STEPS,
            )
            try:
                builder.build(steps, self._choose_readers(len(steps)), self._advance)
            except SlowStaging:
                staging.discard(staged)
                self._advance(before - control.progress.done)
                continue
            break
        return BuiltFolder(top, steps, staged, builder)

    def _choose_readers(self, steps: int) -> list[ContentReader]:
        """One for each thread that writes files. The kernel does most of the work, and threads do not hold that up."""
        if steps < _STEPS_PER_THREAD:
            return [self._context.reader]
        if not self._more_readers:
            count = min(_MAX_THREADS, len(os.sched_getaffinity(0))) - 1
            self._more_readers = [self._context.open_reader() for _ in range(count)]
        return [self._context.reader, *self._more_readers]

    def _choose_leaders(self, steps: Sequence[RestoreStep]) -> None:
        """For each group of hard links: the path that is written, or is right already, and that the others link to."""
        staying = {step.place for step in steps if get_group(step)}
        leaving = {step.place for step in steps} - staying
        leaders, places = self._writer.leaders, self._context.places
        for step in steps:
            group = get_group(step)
            if not group or step.target is None or group in leaders:
                continue
            leaders[group] = step.path
            for place in places.list_live_names(group):
                then = places.at(place, self._context.target)
                if place in leaving or then is None or then.group != group:
                    continue
                live = places.live(place)
                if live is None or (live.content, live.mode, live.mtime) != (then.content, then.mode, then.mtime):
                    break  # all names have the same state
                leaders[group] = places.path(place)
                break

    # Changes of the tree.

    def begin_changes(self) -> None:
        """From here on, the restore cannot be cancelled. Raises `history.cancelled` when it was cancelled before."""
        self._context.control.enter("changing", len(self._work))
        self._context.staging.end_preparing()

    def apply_steps(self) -> None:
        removals = [step for step in self._work if step.live is not None and must_remove_first(step)]
        removals = sort_in_slices(removals, lambda step: step.path)
        self._apply_each(self._writer.remove, removals[::-1])  # what is in a folder comes before the folder
        for step in self._work:
            if step.fate == "folder" and len(step.path) == 1:
                self._apply(self._writer.make_folder, step)
        for built in self._folders:
            self._move_folder(built)
        single = self._single
        folders = [step for step in single if step.fate == "folder" and len(step.path) > 1]
        self._apply_each(self._writer.make_folder, folders)
        files = [step for step in single if step.fate in ("write", "link")]
        leaders = self._writer.leaders
        followers = [step for step in files if step.path != leaders.get(get_group(step), step.path)] if leaders else []
        if followers:
            files = [step for step in files if step.path == leaders.get(get_group(step), step.path)]
        self._apply_each(self._writer.write, [*files, *followers])
        attributes = [step for step in single if step.fate in ("mode", "time") and not _is_folder(step)]
        self._apply_each(self._writer.set_mode_and_time, attributes)
        self._finish_folders()
        self._context.pump()

    def _apply_each(self, action: Action, steps: Sequence[RestoreStep]) -> None:
        for start in range(0, len(steps), _STEPS_PER_PUMP):
            some = steps[start : start + _STEPS_PER_PUMP]
            for step in some:
                self._apply(action, step)
            self._advance(len(some))

    def _advance(self, steps: int) -> None:
        """Called regularly: the watcher reads its events, and the progress is noted."""
        self._context.pump()
        self._context.control.advance(steps)

    def _apply(self, action: Action, step: RestoreStep) -> None:
        if step.path in self.failed:
            return
        try:
            if len(step.path) == 1:
                self._apply_to_root(step)
            else:
                self._apply_in_folder(action, step)
        except PathChangedError:
            self.failed[step.path] = CHANGED_MEANWHILE
        except DamagedContent as error:
            self.failed[step.path] = error.message
        except OSError as error:
            self.failed[step.path] = _describe_error(error)

    def _apply_in_folder(self, action: Action, step: RestoreStep) -> None:
        folder = step.path[:-1]
        parent = self._handles.enter(folder)
        try:
            action(parent, step)
        except PermissionError:
            self._make_writable(parent, folder)
            action(parent, step)
        except OSError as error:
            if error.errno == errno.EXDEV and step.path[0] not in self._writer.inside:
                self._writer.inside.add(step.path[0])  # another mount of the same file system
            elif is_disk_full(error):
                self._context.free_space()
            else:
                raise
            action(parent, step)
        self._touched[folder] = None

    def _apply_to_root(self, step: RestoreStep) -> None:
        """A persistent folder itself is created when it is missing, and never removed."""
        if step.fate == "folder":
            self._handles.close()
            self._context.roots[step.path[0]].mkdir(mode=0o700)
        self._touched[step.path] = None

    def _move_folder(self, built: BuiltFolder) -> None:
        """Move a folder that was built as a whole into its place."""
        top, steps, staged, builder = built
        if top.path in self.failed:
            return
        try:
            self._apply_in_folder(
                lambda parent, step: move_name(staged.folder, staged.name, parent, step.path[-1]), top
            )
        except OSError as error:
            if error.errno == errno.EXDEV:
                self._single = sort_in_slices([*self._single, *steps], lambda step: step.path)
            else:
                self.failed.update(dict.fromkeys((step.path for step in steps), _describe_error(error)))
            return
        self._advance(len(steps))
        self._written.files.update(builder.made)
        builder.made.clear()
        self.failed.update(builder.failed)
        self._built.update(step.path for step in steps if _is_folder(step))

    def _finish_folders(self) -> None:
        """Set modes and times of folders last, each after what is in it, because every write before changed them."""
        wanted: dict[NamePath, PathVersion] = {}
        for step in self._work:
            if step.target is not None and step.target.is_folder and not self._is_finished(step.path):
                wanted[step.path] = step.target
        gone = {
            step.path
            for step in self._work
            if step.live is not None and step.live.is_folder and (step.target is None or not step.target.is_folder)
        }
        paths = self._context.places.begin_paths()
        for path in self._touched:
            if path not in wanted and path not in gone:
                place = paths.find(path)
                live = self._context.places.live(place) if place is not None else None
                if live is not None and live.is_folder:
                    wanted[path] = live
        for path in reversed(sort_in_slices(wanted, lambda path: path)):
            target = wanted[path]
            try:
                handle = self._handles.enter(path)
                found = os.fstat(handle)
                if found.st_mode != target.mode:
                    os.fchmod(handle, stat.S_IMODE(target.mode))
                self._modes.forget(handle)
                if found.st_mtime_ns != target.mtime:
                    os.utime(handle, ns=(target.mtime, target.mtime))
            except OSError as error:
                self.failed.setdefault(path, _describe_error(error))

    def _is_finished(self, path: NamePath) -> bool:
        """True for a folder that was built as a whole and not written to since."""
        return path in self._built and path not in self._touched

    def _make_writable(self, handle: int, path: NamePath) -> None:
        """Make a read-only folder writable for now; `_finish_folders` sets its mode again."""
        mode = os.fstat(handle).st_mode
        with suppress(PermissionError):
            os.fchmod(handle, stat.S_IMODE(mode) | 0o700)
        self._touched[path] = None


def _describe_error(error: OSError) -> str:
    return CHANGED_MEANWHILE if error.errno in _CHANGED_ERRORS else os.strerror(error.errno or 0)


def _is_folder(step: RestoreStep) -> bool:
    return step.target is not None and step.target.is_folder


def _count_new_bytes(step: RestoreStep) -> int:
    return step.target.size if step.target is not None and step.fate in ("write", "link") else 0
