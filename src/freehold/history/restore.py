"""Carrying out a plan: through directory handles, never through a symlink, each file replaced in one rename."""

import errno
import os
import secrets
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from freehold.history.building import Crowded, Subtree, write_content
from freehold.history.contents import ContentReader, DamagedContent
from freehold.history.model import Step, Version
from freehold.history.reading import FOLDER_FLAGS, Taken, open_path
from freehold.history.staging import Staging, exchange, move_in
from freehold.history.states import Places

TEMPORARY = b".freehold-restore-"
_PUMP_EVERY = 500
_MANY = 200
_TRIES = 4
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

MEANWHILE = "it was written to meanwhile"

NamePath = tuple[bytes, ...]


class Restorer:
    """One restore. New files are made in `staging`, where nobody inside the computer can reach them, and moved into place.

    `trusted` holds what was written and found in place afterwards, so that the closing snapshot need not read it again;
    `failed` names each path that is not as planned, and why.
    """

    def __init__(
        self,
        roots: Mapping[bytes, Path],
        staging: Staging,
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
        self._prefix = TEMPORARY + token.encode() + secrets.token_hex(4).encode() + b"-"
        self._at: tuple[NamePath, int] | None = None
        self._stage_inside = False
        self._count = 0
        self._built: set[NamePath] = set()
        self._is_root = os.geteuid() == 0
        self._touched: dict[NamePath, None] = {}
        self._leaders: dict[int, NamePath] = {}
        self._owners: dict[bytes, tuple[int, int]] = {}
        self.trusted: dict[int, Taken] = {}
        self.failed: dict[NamePath, str] = {}
        self.done = 0

    def __enter__(self) -> "Restorer":
        return self

    def __exit__(self, *_: object) -> None:
        self._leave()

    def apply(self, steps: Sequence[Step], pump: Callable[[], None] = lambda: None) -> None:
        work = [step for step in steps if step.fate != "keep"]
        self._choose_leaders(work)
        away = [step for step in work if step.live is not None and _must_leave_first(step)]
        away.sort(key=lambda step: (-len(step.path), step.path))
        self._each(self._take_away, away, pump)
        self._each(self._make_folder, [step for step in work if step.fate == "folder" and len(step.path) == 1], pump)
        rest = self._bring_back_folders(work, pump)
        self._each(self._make_folder, [step for step in rest if step.fate == "folder"], pump)
        files = [step for step in rest if step.fate in ("write", "link")]
        files.sort(key=lambda step: (step.path != self._leaders.get(_group(step), step.path), step.path[:-1]))
        self._each(self._put, files, pump)
        self._each(self._touch, [step for step in rest if step.fate in ("mode", "time") and not _is_folder(step)], pump)
        self._finish_folders(work)
        self.done += len(work) - sum(step.path in self.failed for step in work)
        pump()

    def _each(self, action: Callable[[int, Step], None], steps: Sequence[Step], pump: Callable[[], None]) -> None:
        for count, step in enumerate(steps):
            if count % _PUMP_EVERY == _PUMP_EVERY - 1:
                pump()
            self._try(action, step)

    def _bring_back_folders(self, work: Sequence[Step], pump: Callable[[], None]) -> list[Step]:
        """Folders that are gone, each built whole and moved into place; returns the steps that are left to do."""
        rest: list[Step] = []
        at = 0
        while at < len(work):
            top, start = work[at], at
            at += 1
            if top.fate != "folder" or len(top.path) == 1 or top.path in self.failed or self._stage_inside:
                if top.fate != "folder" or len(top.path) > 1:
                    rest.append(top)
                continue
            while at < len(work) and work[at].path[: len(top.path)] == top.path:
                at += 1
            inside = work[start:at]
            if self._bring_back(top, [step for step in inside if not _group(step)], pump):
                rest.extend(step for step in inside if _group(step))
            else:
                rest.extend(inside)
        return rest

    def _bring_back(self, top: Step, steps: Sequence[Step], pump: Callable[[], None]) -> bool:
        """False: staging will not do for this one. What fails otherwise is in `failed`."""
        try:
            self._enter(top.path[:-1])
        except OSError as error:
            self.failed.update(dict.fromkeys((step.path for step in steps), self._reason(error)))
            return True
        subtree, folder, temporary = self._build(top, steps, pump)
        try:
            if os.strerror(errno.ENOSPC) in subtree.failed.values():
                raise OSError(errno.ENOSPC, "staging is full")  # noqa: TRY301
            self._in_folder(lambda parent, step: move_in(folder, temporary, parent, step.path[-1]), top)
        except OSError as error:
            self._staging.discard(temporary)
            if error.errno in (errno.EXDEV, errno.ENOSPC):
                self._stage_inside = True
                return False
            self.failed.update(dict.fromkeys((step.path for step in steps), self._reason(error)))
            return True
        self.trusted.update(subtree.made)
        self.failed.update(subtree.failed)
        self._built.update(step.path for step in steps if _is_folder(step))
        return True

    def _build(self, top: Step, steps: Sequence[Step], pump: Callable[[], None]) -> tuple[Subtree, int, bytes]:
        """The folder in staging, begun again elsewhere where making files turns out to be slow."""
        owner = self._owners[top.path[0]]
        for left in reversed(range(_TRIES)):
            if len(steps) > _MANY:
                self._staging.begin_anew()
            folder, temporary = self._temporary(-1)
            may_move = left > 0 and len(steps) > _MANY
            subtree = Subtree(
                self._reader, folder, temporary, owner if self._is_root and owner != (0, 0) else None, may_move=may_move
            )
            try:
                subtree.build(steps, pump)
            except Crowded:
                self._staging.discard(temporary)
                continue
            break
        return subtree, folder, temporary

    def _try(self, action: Callable[[int, Step], None], step: Step) -> None:
        if step.path in self.failed:
            return
        try:
            if len(step.path) == 1:
                self._root_step(step)
            else:
                self._in_folder(action, step)
        except _Meanwhile:
            self.failed[step.path] = MEANWHILE
        except DamagedContent as error:
            self.failed[step.path] = error.message
        except OSError as error:
            self.failed[step.path] = self._reason(error)

    @staticmethod
    def _reason(error: OSError) -> str:
        return MEANWHILE if error.errno in _MEANWHILE_ERRORS else os.strerror(error.errno or 0)

    def _in_folder(self, action: Callable[[int, Step], None], step: Step) -> None:
        parent = self._enter(step.path[:-1])
        try:
            action(parent, step)
        except PermissionError:
            self._open_up(parent, step.path[:-1])
            action(parent, step)
        except OSError as error:
            if error.errno not in (errno.EXDEV, errno.ENOSPC) or self._stage_inside:
                raise
            self._stage_inside = True  # the history lies on another mount, or a full one: stage beside the target
            action(parent, step)
        self._touched[step.path[:-1]] = None

    def _root_step(self, step: Step) -> None:
        """A kept folder itself: made again when it is gone, never taken away."""
        if step.fate == "folder":
            self._roots[step.path[0]].mkdir(mode=0o700)
        self._touched[step.path] = None

    # Handles.

    def _enter(self, path: NamePath) -> int:
        if self._at is not None and self._at[0] == path:
            return self._at[1]
        self._leave()
        root = os.open(self._roots[path[0]], FOLDER_FLAGS)
        try:
            if path[0] not in self._owners:
                found = os.fstat(root)
                self._owners[path[0]] = (found.st_uid, found.st_gid)
            handle = open_path(root, path[1:])
        finally:
            os.close(root)
        self._at = (path, handle)
        return handle

    def _leave(self) -> None:
        if self._at is not None:
            os.close(self._at[1])
            self._at = None

    def _open_up(self, handle: int, path: NamePath) -> None:
        """A read-only folder of ours is made writable for the time being; `_finish_folders` gives it its mode again."""
        mode = os.fstat(handle).st_mode
        os.fchmod(handle, stat.S_IMODE(mode) | 0o700)
        self._touched[path] = None

    # The steps.

    def _take_away(self, parent: int, step: Step) -> None:
        name = step.path[-1]
        assert step.live is not None
        if step.live.is_folder:
            try:
                os.rmdir(name, dir_fd=parent)
            except OSError as error:
                if error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                    raise _Meanwhile from error
                raise
            return
        folder, temporary = self._temporary(parent)
        move_in(parent, name, folder, temporary)
        if not _is_as_known(os.stat(temporary, dir_fd=folder, follow_symlinks=False), step.live):
            move_in(folder, temporary, parent, name)
            raise _Meanwhile
        self._discard(temporary, folder)

    def _make_folder(self, parent: int, step: Step) -> None:
        folder, temporary = self._temporary(parent)
        os.mkdir(temporary, 0o700, dir_fd=folder)
        try:
            if self._is_root:
                os.chown(temporary, *self._owners[step.path[0]], dir_fd=folder, follow_symlinks=False)
            move_in(folder, temporary, parent, step.path[-1])
        except BaseException:
            _rmdir_quietly(temporary, folder)
            raise

    def _put(self, parent: int, step: Step) -> None:
        assert step.target is not None
        if step.live is not None:
            self._expect(parent, step)
        if step.target.is_link:
            self._put_link(parent, step, step.target)
            return
        leader = self._leaders.get(_group(step))
        if leader is not None and leader != step.path:
            self._put_name(parent, step, leader)
        elif not self._is_right_already(parent, step, step.target):
            self._put_file(parent, step, step.target)

    def _put_file(self, parent: int, step: Step, target: Version) -> None:
        assert target.content is not None
        folder, temporary = self._temporary(parent)
        began = time.thread_time()
        handle = os.open(temporary, _NEW_FILE, 0o600, dir_fd=folder)
        self._staging.took(time.thread_time() - began)
        try:
            try:
                write_content(handle, self._reader, target.content)
                if self._is_root:
                    os.fchown(handle, *self._owners[step.path[0]])
                os.fchmod(handle, stat.S_IMODE(target.mode))
                os.utime(handle, ns=(target.mtime, target.mtime))
                made = os.fstat(handle)
            finally:
                # Closed before it is in place: an event of writing under the final name is then somebody else's.
                os.close(handle)
            self._swap(folder, temporary, parent, step)
        except BaseException:
            _unlink_quietly(temporary, folder)
            raise
        self._note(step, made, os.stat(step.path[-1], dir_fd=parent, follow_symlinks=False))

    def _put_link(self, parent: int, step: Step, target: Version) -> None:
        assert target.content is not None
        folder, temporary = self._temporary(parent)
        os.symlink(self._reader.read(target.content), temporary, dir_fd=folder)
        try:
            if self._is_root:
                os.chown(temporary, *self._owners[step.path[0]], dir_fd=folder, follow_symlinks=False)
            os.utime(temporary, ns=(target.mtime, target.mtime), dir_fd=folder, follow_symlinks=False)
            self._swap(folder, temporary, parent, step)
        except BaseException:
            _unlink_quietly(temporary, folder)
            raise

    def _put_name(self, parent: int, step: Step, leader: NamePath) -> None:
        """One more name for a file that is in place already."""
        root = os.open(self._roots[leader[0]], FOLDER_FLAGS)
        try:
            source = open_path(root, leader[1:-1])
        finally:
            os.close(root)
        folder, temporary = self._temporary(parent)
        try:
            if not stat.S_ISREG(os.stat(leader[-1], dir_fd=source, follow_symlinks=False).st_mode):
                raise _Meanwhile
            os.link(leader[-1], temporary, src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)
            self._swap(folder, temporary, parent, step)
        finally:
            # Renaming one name of a file over another of the same file leaves both.
            _unlink_quietly(temporary, folder)
            os.close(source)

    def _touch(self, parent: int, step: Step) -> None:
        assert step.target is not None
        self._expect(parent, step)
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

    def _finish_folders(self, steps: Sequence[Step]) -> None:
        """Modes and times of folders last, deepest first, since every write above changed them."""
        wanted: dict[NamePath, Version] = {}
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
                self.failed.setdefault(
                    path, MEANWHILE if error.errno in _MEANWHILE_ERRORS else os.strerror(error.errno or 0)
                )

    def _is_finished(self, path: NamePath) -> bool:
        """Built whole, and nothing was put into it since."""
        return path in self._built and path not in self._touched

    # Seeing to it that nothing unseen is lost.

    def _expect(self, parent: int, step: Step) -> None:
        """The name is as the snapshot before saw it, or the step is left for the next round."""
        live = step.live
        try:
            found = os.stat(step.path[-1], dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            if live is None or _must_leave_first(step):
                return
            raise _Meanwhile from None
        if live is None or live.is_folder:
            raise _Meanwhile
        if not _is_as_known(found, live) or (live.ctime and live.nlink == 1 and found.st_ctime_ns != live.ctime):
            raise _Meanwhile

    def _swap(self, folder: int, temporary: bytes, parent: int, step: Step) -> None:
        """The staged file takes its place in one step. What it displaced is looked at once more before it goes.

        Exchanging also spares the flush that ext4 does when a file is renamed over another.
        """
        name = step.path[-1]
        if step.live is None or step.live.is_folder:
            move_in(folder, temporary, parent, name)
            return
        try:
            exchange(folder, temporary, parent, name)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOSYS):
                raise
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=parent)
            return
        if not _is_as_known(os.stat(temporary, dir_fd=folder, follow_symlinks=False), step.live):
            exchange(folder, temporary, parent, name)
            raise _Meanwhile
        self._discard(temporary, folder)

    def _is_right_already(self, parent: int, step: Step, target: Version) -> bool:
        """Only the number of names differed, and that settled itself."""
        live = step.live
        if live is None or (live.content, live.mode, live.mtime) != (target.content, target.mode, target.mtime):
            return False
        found = os.stat(step.path[-1], dir_fd=parent, follow_symlinks=False)
        return target.group != 0 or found.st_nlink == 1

    def _note(self, step: Step, made: os.stat_result, found: os.stat_result) -> None:
        assert step.target is not None
        if (found.st_ino, found.st_mtime_ns, found.st_size, found.st_nlink) == (
            made.st_ino,
            made.st_mtime_ns,
            made.st_size,
            1,
        ):
            self.trusted[step.place] = Taken(found, step.target.content, step.target.flag)

    def _choose_leaders(self, steps: Sequence[Step]) -> None:
        """Of each file with several names: the one written (or found right), to which the others are linked."""
        staying = {step.place for step in steps if _group(step)}
        leaving = {step.place for step in steps} - staying
        for step in steps:
            group = _group(step)
            if not group or step.target is None or group in self._leaders:
                continue
            self._leaders[group] = step.path
            for version in self._places.alive_with_inode(group):
                then = self._places.at(version.place, self._target)
                if version.place in leaving or then is None or then.group != group:
                    continue
                if (version.content, version.mode, version.mtime) == (then.content, then.mode, then.mtime):
                    self._leaders[group] = self._places.path(version.place)
                    break

    def _discard(self, temporary: bytes, folder: int) -> None:
        if self._stage_inside:
            os.unlink(temporary, dir_fd=folder)
        else:
            self._staging.discard(temporary)

    def _temporary(self, parent: int) -> tuple[int, bytes]:
        self._count += 1
        name = b"%s%d" % (self._prefix, self._count)
        return (parent if self._stage_inside else self._staging.take_handle()), name


class _Meanwhile(Exception):
    """Somebody else got there first; the next round takes that into history and tries again."""


_MEANWHILE_ERRORS = frozenset({errno.ENOENT, errno.ENOTDIR, errno.EEXIST, errno.ELOOP, errno.EISDIR, errno.ENOTEMPTY})


def _must_leave_first(step: Step) -> bool:
    """A removal, or a change between folder and not-folder; all else is replaced in one rename."""
    if step.target is None:
        return True
    return step.live is not None and step.live.is_folder != step.target.is_folder


def _is_folder(step: Step) -> bool:
    return step.target is not None and step.target.is_folder


def _group(step: Step) -> int:
    return step.target.group if step.target is not None and step.fate in ("write", "link") else 0


def _unlink_quietly(name: bytes, folder: int) -> None:
    try:
        os.unlink(name, dir_fd=folder)
    except OSError:
        return


def _rmdir_quietly(name: bytes, folder: int) -> None:
    try:
        os.rmdir(name, dir_fd=folder)
    except OSError:
        return


def _is_as_known(found: os.stat_result, live: Version) -> bool:
    return (found.st_ino, found.st_mtime_ns, found.st_mode, found.st_size) == (
        live.ino,
        live.mtime,
        live.mode,
        live.size,
    )
