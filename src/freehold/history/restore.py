"""Carries out a restore plan, step by step. No step follows a symlink, and no unrecorded file is overwritten."""

import errno
import os
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from freehold.history.contents import ContentReader, DamagedContent
from freehold.history.file_writer import FileWriter, PathChangedError, get_group, must_remove_first
from freehold.history.folder_builder import FolderBuilder, SlowStaging
from freehold.history.model import PathVersion, RestoreStep
from freehold.history.staging_area import StagingArea, move_name
from freehold.history.states import Places
from freehold.history.tree_reader import FOLDER_FLAGS, StoredFile, open_path

CHANGED_MEANWHILE = "it was changed during the restore"
_STEPS_PER_PUMP = 500
_MANY_STEPS = 200
_MAX_BUILDS = 4
_CHANGED_ERRORS = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.ELOOP, errno.EISDIR, errno.ENOTEMPTY})

NamePath = tuple[bytes, ...]


class Restorer:
    """One restore. `failed` has each path that does not have the planned state, and the reason."""

    def __init__(
        self,
        roots: Mapping[bytes, Path],
        staging: StagingArea,
        reader: ContentReader,
        places: Places,
        token: str,
        target: int,
    ) -> None:
        self._roots = roots
        self._target = target
        self._staging = staging
        self._reader = reader
        self._places = places
        self._writer = FileWriter(roots, staging, reader, token)
        self._entered: tuple[NamePath, int] | None = None
        self._built: set[NamePath] = set()
        self._touched: dict[NamePath, None] = {}
        self.failed: dict[NamePath, str] = {}

    def __enter__(self) -> "Restorer":
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()

    @property
    def trusted(self) -> dict[int, StoredFile]:
        """What was written and found in place afterwards, so that the next snapshot need not read it again."""
        return self._writer.trusted

    def apply_steps(self, steps: Sequence[RestoreStep], pump: Callable[[], None] = lambda: None) -> None:
        """`pump` is called regularly, so that the watcher can read its events during a long restore."""
        work = [step for step in steps if step.fate != "keep"]
        self._choose_leaders(work)
        removals = [step for step in work if step.live is not None and must_remove_first(step)]
        removals.sort(key=lambda step: (-len(step.path), step.path))
        self._apply_each(self._writer.remove, removals, pump)
        roots = [step for step in work if step.fate == "folder" and len(step.path) == 1]
        self._apply_each(self._writer.make_folder, roots, pump)
        rest = self._restore_folders(work, pump)
        self._apply_each(self._writer.make_folder, [step for step in rest if step.fate == "folder"], pump)
        files = [step for step in rest if step.fate in ("write", "link")]
        leaders = self._writer.leaders
        files.sort(key=lambda step: (step.path != leaders.get(get_group(step), step.path), step.path[:-1]))
        self._apply_each(self._writer.write, files, pump)
        attributes = [step for step in rest if step.fate in ("mode", "time") and not _is_folder(step)]
        self._apply_each(self._writer.set_mode_and_time, attributes, pump)
        self._finish_folders(work)
        pump()

    def _apply_each(
        self, action: Callable[[int, RestoreStep], None], steps: Sequence[RestoreStep], pump: Callable[[], None]
    ) -> None:
        for count, step in enumerate(steps):
            if count % _STEPS_PER_PUMP == _STEPS_PER_PUMP - 1:
                pump()
            self._apply(action, step)

    def _apply(self, action: Callable[[int, RestoreStep], None], step: RestoreStep) -> None:
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

    def _apply_in_folder(self, action: Callable[[int, RestoreStep], None], step: RestoreStep) -> None:
        parent = self._enter(step.path[:-1])
        try:
            action(parent, step)
        except PermissionError:
            self._make_writable(parent, step.path[:-1])
            action(parent, step)
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.ENOSPC) or self._writer.stage_inside:
                raise
            self._writer.stage_inside = True  # staging is on another mount, or full
            action(parent, step)
        self._touched[step.path[:-1]] = None

    def _apply_to_root(self, step: RestoreStep) -> None:
        """A persistent folder itself is created when it is missing, and never removed."""
        if step.fate == "folder":
            self._roots[step.path[0]].mkdir(mode=0o700)
        self._touched[step.path] = None

    # Whole folders.

    def _restore_folders(self, work: Sequence[RestoreStep], pump: Callable[[], None]) -> list[RestoreStep]:
        """Build each missing folder as a whole and move it into place. Returns the steps that are left to do."""
        rest: list[RestoreStep] = []
        at = 0
        while at < len(work):
            top, start = work[at], at
            at += 1
            if top.fate != "folder" or len(top.path) == 1 or top.path in self.failed or self._writer.stage_inside:
                if top.fate != "folder" or len(top.path) > 1:
                    rest.append(top)
                continue
            while at < len(work) and work[at].path[: len(top.path)] == top.path:
                at += 1
            inside = work[start:at]
            if self._restore_folder(top, [step for step in inside if not get_group(step)], pump):
                rest.extend(step for step in inside if get_group(step))
            else:
                rest.extend(inside)
        return rest

    def _restore_folder(self, top: RestoreStep, steps: Sequence[RestoreStep], pump: Callable[[], None]) -> bool:
        """False when staging cannot be used for this folder. Other failures are added to `failed`."""
        try:
            self._enter(top.path[:-1])
        except OSError as error:
            self.failed.update(dict.fromkeys((step.path for step in steps), _describe_error(error)))
            return True
        builder, folder, temporary = self._build_folder(top, steps, pump)
        try:
            if os.strerror(errno.ENOSPC) in builder.failed.values():
                raise OSError(errno.ENOSPC, "staging is full")  # noqa: TRY301
            self._apply_in_folder(lambda parent, step: move_name(folder, temporary, parent, step.path[-1]), top)
        except OSError as error:
            self._staging.discard(temporary)
            if error.errno in (errno.EXDEV, errno.ENOSPC):
                self._writer.stage_inside = True
                return False
            self.failed.update(dict.fromkeys((step.path for step in steps), _describe_error(error)))
            return True
        self.trusted.update(builder.made)
        self.failed.update(builder.failed)
        self._built.update(step.path for step in steps if _is_folder(step))
        return True

    def _build_folder(
        self, top: RestoreStep, steps: Sequence[RestoreStep], pump: Callable[[], None]
    ) -> tuple[FolderBuilder, int, bytes]:
        """The folder in staging. When file creation is slow there, it is built again in another staging folder."""
        owner = self._writer.owners[top.path[0]]
        for left in reversed(range(_MAX_BUILDS)):
            if len(steps) > _MANY_STEPS:
                self._staging.request_new_folder()
            folder, temporary = self._writer.make_temporary_name(-1)
            builder = FolderBuilder(
                self._reader,
                folder,
                temporary,
                owner if self._writer.is_root and owner != (0, 0) else None,
                may_move=left > 0 and len(steps) > _MANY_STEPS,
            )
            try:
                builder.build(steps, pump)
            except SlowStaging:
                self._staging.discard(temporary)
                continue
            break
        return builder, folder, temporary

    def _finish_folders(self, steps: Sequence[RestoreStep]) -> None:
        """Set modes and times of folders last, deepest first, because every write before changed them."""
        wanted: dict[NamePath, PathVersion] = {}
        for step in steps:
            if step.target is not None and step.target.is_folder and not self._is_finished(step.path):
                wanted[step.path] = step.target
        gone = {step.path for step in steps if step.target is None or not step.target.is_folder}
        for path in self._touched:
            if path not in wanted and path not in gone:
                place = self._places.find(path)
                live = self._places.live(place) if place is not None else None
                if live is not None and live.is_folder:
                    wanted[path] = live
        for path in sorted(wanted, key=len, reverse=True):
            target = wanted[path]
            try:
                handle = self._enter(path)
                found = os.fstat(handle)
                if found.st_mode != target.mode:
                    os.fchmod(handle, stat.S_IMODE(target.mode))
                if found.st_mtime_ns != target.mtime:
                    os.utime(handle, ns=(target.mtime, target.mtime))
            except OSError as error:
                self.failed.setdefault(path, _describe_error(error))

    def _is_finished(self, path: NamePath) -> bool:
        """True for a folder that was built as a whole and not written to since."""
        return path in self._built and path not in self._touched

    def _choose_leaders(self, steps: Sequence[RestoreStep]) -> None:
        """For each group of hard links: the path that is written, or is right already, and that the others link to."""
        staying = {step.place for step in steps if get_group(step)}
        leaving = {step.place for step in steps} - staying
        leaders = self._writer.leaders
        for step in steps:
            group = get_group(step)
            if not group or step.target is None or group in leaders:
                continue
            leaders[group] = step.path
            for version in self._places.find_live_with_inode(group):
                then = self._places.at(version.place, self._target)
                if version.place in leaving or then is None or then.group != group:
                    continue
                if (version.content, version.mode, version.mtime) == (then.content, then.mode, then.mtime):
                    leaders[group] = self._places.path(version.place)
                    break

    # Handles.

    def _enter(self, path: NamePath) -> int:
        """A handle on the folder at `path`. The last one stays open until another is entered."""
        if self._entered is not None and self._entered[0] == path:
            return self._entered[1]
        self._leave()
        root = os.open(self._roots[path[0]], FOLDER_FLAGS)
        try:
            if path[0] not in self._writer.owners:
                found = os.fstat(root)
                self._writer.owners[path[0]] = (found.st_uid, found.st_gid)
            handle = open_path(root, path[1:])
        finally:
            os.close(root)
        self._entered = (path, handle)
        return handle

    def _leave(self) -> None:
        if self._entered is not None:
            os.close(self._entered[1])
            self._entered = None

    def _make_writable(self, handle: int, path: NamePath) -> None:
        """Make a read-only folder writable for now; `_finish_folders` sets its mode again."""
        mode = os.fstat(handle).st_mode
        os.fchmod(handle, stat.S_IMODE(mode) | 0o700)
        self._touched[path] = None


def _describe_error(error: OSError) -> str:
    return CHANGED_MEANWHILE if error.errno in _CHANGED_ERRORS else os.strerror(error.errno or 0)


def _is_folder(step: RestoreStep) -> bool:
    return step.target is not None and step.target.is_folder
