"""Working copies: a folder as an entry has it, made elsewhere, and what somebody has changed in it since.

A copy shares nothing with the tree: its files are written from the store. What happens in it touches no other file.
"""

import json
import os
import re
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.history.change_set import ChangeSet, ChangeSets, make_change, make_version
from freehold.history.contents import ContentReader, ContentStore
from freehold.history.database import open_reader, transaction
from freehold.history.entries import EntryLog
from freehold.history.folder_builder import FolderBuilder
from freehold.history.ignore_rules import IgnoredFolders, IgnoreMatcher, compile_ignore_rules
from freehold.history.model import FLAG_WORDS, PathChange, PathVersion, RestoreStep
from freehold.history.names import show_name
from freehold.history.staging_area import StagedName, remove_path
from freehold.history.states import Places
from freehold.history.tree_reader import SnapshotLimits, WidenedModes, store_file

NamePath = tuple[bytes, ...]
WORKSPACE = b"workspace"
NAME = re.compile(r"[a-z][a-z0-9-]{0,31}")
MAX_PATHS = 200_000
MAX_COPY_BYTES = 2 << 30
MAX_CHANGES = 20_000
MAX_CHANGED_BYTES = 512 << 20
MAX_DEPTH = 200
_RULES = "ignored"
_MAX_SKIPPED = 100


@dataclass(frozen=True)
class WorkingCopy:
    """`folder` is None for a copy that began empty. Every file of it that was changed has a ctime of `stamp` or later."""

    name: str
    base: int
    folder: NamePath | None
    stamp: int


class WorkingCopies:
    """Thread-safe. `lock` is that of history; it is not held while files of a copy are written or looked through."""

    def __init__(
        self,
        db: sqlite3.Connection,
        lock: threading.RLock,
        contents: ContentStore,
        workspace: Path,
        folder: Path,
        ignore: Sequence[str],
        room: Callable[[], int],
    ) -> None:
        self._db = db
        self._lock = lock
        self._contents = contents
        self._workspace = workspace
        self._folder = folder
        self._ignore = ignore
        self._ignored = compile_ignore_rules(ignore)
        self._room = room
        self._sets = ChangeSets(db)
        self._database = Path(db.execute("PRAGMA database_list").fetchone()[2])

    def check_out(self, name: str, folder: NamePath | None, entry: int) -> WorkingCopy:
        """Make a copy of a folder as `entry` has it. The entry is kept as long as the copy or its changes are."""
        if not NAME.fullmatch(name):
            raise FreeholdError("history.bad-name", f"{name[:60]!a} is not a name for a copy")
        with self._lock, transaction(self._db):
            if self._find(name) is not None or self._sets.find(name) is not None:
                raise FreeholdError("history.exists", f"There is a copy {name} already")
            EntryLog(self._db).get(entry)
            # Recorded first: from here on the entry is not dropped, and what a crash leaves is found.
            self._db.execute(
                "INSERT INTO working_copy (name, base, folder, at, stamp) VALUES (?, ?, ?, ?, 0)",
                (name, entry, None if folder is None else b"/".join(folder), time.time()),
            )
        try:
            self._build(name, folder, entry)
            stamp = self._read_clock(name)
            with self._lock, transaction(self._db):
                self._db.execute("UPDATE working_copy SET stamp = ? WHERE name = ?", (stamp, name))
        except BaseException:
            self.drop(name)
            raise
        return WorkingCopy(name, entry, folder, stamp)

    def collect(self, name: str) -> ChangeSet:
        """Store what was changed in a copy, and remove the copy. Nothing may write to it any more. Idempotent."""
        with self._lock:
            done, copy = self._sets.find(name), self._find(name)
        if done is None:
            if copy is None:
                raise FreeholdError("history.not-found", f"There is no copy {name[:60]!a}")
            # The stamp is missing when it was never finished: then nobody has worked in it.
            seen = _CopyScan(self._root(name), copy, self._list_base(copy), self._ignored) if copy.stamp else None
            with self._lock:
                done = self._store(copy, seen)
        self._remove_files(name)
        return done

    def drop(self, name: str) -> None:
        """Forget a copy and its changes. Idempotent."""
        with self._lock, transaction(self._db):
            self._db.execute("DELETE FROM working_copy WHERE name = ?", (name,))
            self._sets.drop(name)
        self._remove_files(name)

    def find_folder(self, places: Places, folder: NamePath, entry: int) -> None:
        """Raises `history.no-folder` when the entry has no such folder, or one that is ignored now."""
        if find_top(places, folder, entry, self._ignored) is None:
            shown = show_name(b"/".join(folder))
            raise FreeholdError(
                "history.no-folder",
                f"Entry {entry} of the history has no folder {shown} that can be copied",
                hint=f"freehold log {shown} lists the entries that have changed it",
            )

    def remove_strays(self) -> None:
        """Files of copies that were dropped or collected when the process was killed."""
        if self._folder.is_dir():
            with self._lock:
                known = {row[0] for row in self._db.execute("SELECT name FROM working_copy")}
            for path in self._folder.iterdir():
                if path.name not in known:
                    self._remove_files(path.name)

    # Making.

    def _build(self, name: str, folder: NamePath | None, entry: int) -> None:
        root = self._root(name)
        root.parent.mkdir(parents=True, mode=0o700)
        found = self._workspace.stat()
        owner = (found.st_uid, found.st_gid) if os.geteuid() == 0 else None
        if folder is None or len(folder) > 1:
            _make_folder(root, owner)
        if folder is None:
            return
        # They may be others when the changes are collected. What was left out then has not been removed by anybody.
        (root.parent / _RULES).write_text(json.dumps(list(self._ignore)))
        db = open_reader(self._database)
        try:
            steps = list_steps(Places(db), folder, entry, self._ignored)
            target = root
            for part in folder[1:-1]:
                target = target / os.fsdecode(part)
                _make_folder(target, owner)
            target = target / os.fsdecode(folder[-1]) if len(folder) > 1 else root
            staged = StagedName(-1, os.fsencode(target.name), str(target))
            builder = FolderBuilder(folder, staged, owner, may_move=False)
            builder.build(steps, [ContentReader(db, self._contents.folder)], lambda count: None)
        finally:
            db.close()
        if builder.failed:
            path, reason = next(iter(builder.failed.items()))
            raise FreeholdError(
                "history.failed", f"{len(builder.failed)} files could not be copied ({show_name(path[-1])}: {reason})"
            )

    def _read_clock(self, name: str) -> int:
        """The time of the file system, which is that of every later change."""
        mark = self._folder / name / "mark"
        mark.touch(mode=0o600)
        return mark.stat().st_ctime_ns

    # Collecting.

    def _list_base(self, copy: WorkingCopy) -> dict[NamePath, PathVersion]:
        if copy.folder is None:
            return {}
        db = open_reader(self._database)
        try:
            steps = list_steps(Places(db), copy.folder, copy.base, self._read_rules(copy.name))
        finally:
            db.close()
        return {step.path: step.target for step in steps if step.target is not None}

    def _read_rules(self, name: str) -> IgnoreMatcher | None:
        """What was left out of a copy when it was made; nothing of one that an earlier version made.

        After a power loss the file may be empty, as any file of the copy.
        """
        try:
            return compile_ignore_rules(json.loads((self._folder / name / _RULES).read_text()))
        except (FileNotFoundError, ValueError):
            return None

    def _store(self, copy: WorkingCopy, seen: "_CopyScan | None") -> ChangeSet:
        self._contents.written_bytes = 0
        limits = SnapshotLimits(min(self._room(), MAX_CHANGED_BYTES), MAX_CHANGED_BYTES)
        try:
            with transaction(self._db):
                changes = seen.store(self._contents, limits) if seen is not None else []
                self._contents.flush()
                self._sets.add(copy.name, copy.base, changes, seen.skipped if seen is not None else ())
                self._db.execute("DELETE FROM working_copy WHERE name = ?", (copy.name,))
                self._contents.sync()
        except BaseException:
            self._contents.reload()
            raise
        return self._sets.get(copy.name)

    def _find(self, name: str) -> WorkingCopy | None:
        row = self._db.execute("SELECT base, folder, stamp FROM working_copy WHERE name = ?", (name,)).fetchone()
        if row is None:
            return None
        return WorkingCopy(name, row[0], None if row[1] is None else tuple(bytes(row[1]).split(b"/")), row[2])

    def _root(self, name: str) -> Path:
        return self._folder / name / "workspace"

    def _remove_files(self, name: str) -> None:
        remove_path(str(self._folder / name))


def find_top(places: Places, folder: NamePath, entry: int, ignored: IgnoreMatcher | None) -> PathVersion | None:
    """A folder as an entry has it; None for what is no folder, or is ignored."""
    place = None if ignored is not None and IgnoredFolders(ignored).has(folder) else places.find(folder)
    top = None if place is None else places.at(place, entry)
    return top if top is not None and top.is_folder else None


def list_steps(places: Places, folder: NamePath, entry: int, ignored: IgnoreMatcher | None) -> list[RestoreStep]:
    """Everything of a folder that an entry has and that can be written, in path order, the folder first.

    What is ignored is left out: an entry has it if it was recorded before there was such a rule.
    """
    top = find_top(places, folder, entry, ignored)
    if top is None:
        raise FreeholdError(
            "history.no-folder",
            f"There is no folder {show_name(b'/'.join(folder))} in the workspace",
            hint="Give a folder of the workspace, such as site, or . for all of it",
        )
    steps, size, waiting = [_step(folder, top)], 0, [(folder, top.place)]
    while waiting:
        path, above = waiting.pop()
        for name, version in places.list_inside(above, entry):
            if version.is_noted_only or (ignored is not None and ignored((*path, name), version.mode)):
                continue
            steps.append(_step((*path, name), version))
            if version.is_folder:
                waiting.append(((*path, name), version.place))
            else:
                size += version.size
        if len(steps) > MAX_PATHS or size > MAX_COPY_BYTES:
            raise FreeholdError(
                "history.too-big",
                f"{show_name(b'/'.join(folder))} is too large for a copy: {MAX_PATHS} files with {MAX_COPY_BYTES >> 30} GiB are possible",
                hint="Choose a folder in it, or list what need not be copied in history.ignore",
            )
    return sorted(steps, key=lambda step: step.path)


def _step(path: NamePath, version: PathVersion) -> RestoreStep:
    return RestoreStep(path, "folder" if version.is_folder else "write", version.place, None, version)


def _make_folder(path: Path, owner: tuple[int, int] | None) -> None:
    path.mkdir(mode=0o755)
    if owner is not None:
        os.chown(path, *owner, follow_symlinks=False)


class _CopyScan:
    """Looks through a copy without following a link. What looks changed is compared by content when it is stored."""

    def __init__(
        self, root: Path, copy: WorkingCopy, base: dict[NamePath, PathVersion], ignored: IgnoreMatcher | None
    ) -> None:
        self._root = root
        self._copy = copy
        self._base = base
        self._ignored = ignored
        self._ignored_folders = IgnoredFolders(ignored) if ignored is not None else None
        self._top = copy.folder or (WORKSPACE,)
        self._found: list[tuple[NamePath, os.stat_result]] = []
        self._seen: set[NamePath] = set()
        self.skipped: list[str] = []
        modes = WidenedModes()
        try:
            for path, found in self._walk(modes):
                self._seen.add(path)
                if len(self._seen) > MAX_PATHS:
                    raise self._refuse(f"more than {MAX_PATHS} files")
                if not self._is_untouched(path, found):
                    self._found.append((path, found))
                    if len(self._found) > MAX_CHANGES:
                        raise self._refuse(f"more than {MAX_CHANGES} changed files")
        finally:
            modes.put_back()

    def store(self, contents: ContentStore, limits: SnapshotLimits) -> list[PathChange]:
        modes = WidenedModes()
        changes: list[PathChange] = []
        root = modes.open_root(self._root)
        try:
            for path, found in self._found:
                change = self._read_change(contents, limits, modes, root, path, found)
                if change is not None:
                    changes.append(change)
        finally:
            os.close(root)
            modes.put_back()
        gone = sorted(path for path in self._base.keys() - self._seen - {self._top} if not self._is_ignored(path))
        return [*changes, *(make_change(b"/".join(path), self._base[path], None) for path in gone)]

    def _is_ignored(self, path: NamePath) -> bool:
        """By a rule that is newer than the copy: such a path was not looked for."""
        if self._ignored is None or self._ignored_folders is None:
            return False
        return self._ignored_folders.has(path[:-1]) or self._ignored(path, self._base[path].mode)

    def _walk(self, modes: WidenedModes) -> Iterator[tuple[NamePath, os.stat_result]]:
        """Everything below the copied folder; nothing when it is gone."""
        root = modes.open_root(self._root)
        try:
            waiting: list[NamePath] = [self._top]
            device = os.fstat(root).st_dev
            while waiting:
                folder = waiting.pop()
                try:
                    handle = modes.open_path(root, folder[1:])
                except OSError:
                    continue
                try:
                    with os.scandir(handle) as entries:
                        names = [entry.name for entry in entries]
                    for name in names:
                        path = (*folder, os.fsencode(name))
                        found = os.stat(name, dir_fd=handle, follow_symlinks=False)
                        if found.st_dev != device or (self._ignored is not None and self._ignored(path, found.st_mode)):
                            continue
                        yield path, found
                        if stat.S_ISDIR(found.st_mode) and len(path) <= MAX_DEPTH:
                            waiting.append(path)
                finally:
                    os.close(handle)
        finally:
            os.close(root)

    def _is_untouched(self, path: NamePath, found: os.stat_result) -> bool:
        base = self._base.get(path)
        if base is None or base.mode != found.st_mode:
            return False
        if base.is_folder:
            return True
        # Programs can set every time of a file but its ctime.
        looks = (base.size, base.mtime) == (found.st_size, found.st_mtime_ns)
        return looks and found.st_ctime_ns < self._copy.stamp

    def _read_change(
        self,
        contents: ContentStore,
        limits: SnapshotLimits,
        modes: WidenedModes,
        root: int,
        path: NamePath,
        found: os.stat_result,
    ) -> PathChange | None:
        base, text = self._base.get(path), b"/".join(path)
        if stat.S_ISDIR(found.st_mode):
            return make_change(text, base, make_version(found.st_mode & 0o170777, found.st_mtime_ns, 0, None))
        try:
            handle = modes.open_path(root, path[1:-1])
        except OSError as error:
            self._skip(text, os.strerror(error.errno or 0))
            return None
        try:
            stored = store_file(contents, limits, handle, path[-1], found)
        finally:
            os.close(handle)
        if stored is None:
            return None
        if stored.content is None:
            self._skip(text, FLAG_WORDS.get(stored.flag, "is not a file"))
            return None
        mode = stored.stat.st_mode & 0o170777
        new = make_version(mode, stored.stat.st_mtime_ns, stored.stat.st_size, stored.content)
        if base is not None and (base.mode & 0o170777, base.content) == (mode, stored.content):
            return None
        return make_change(text, base, new)

    def _skip(self, path: bytes, reason: str) -> None:
        if len(self.skipped) < _MAX_SKIPPED:
            self.skipped.append(f"{show_name(path)}: {reason}")

    def _refuse(self, what: str) -> FreeholdError:
        return FreeholdError("history.too-big", f"The copy {self._copy.name} has {what}, so its changes are not kept")
