"""Scans the folders for a snapshot: everything, or only the paths that are known to be dirty."""

import os
import sqlite3
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from freehold.history.contents import ContentStore
from freehold.history.folder_handles import FolderHandles
from freehold.history.ignore_rules import IgnoredFolders, IgnoreMatcher
from freehold.history.model import FLAG_COMPLETE, PathVersion
from freehold.history.slices import sort_in_slices
from freehold.history.tree_reader import (
    SnapshotLimits,
    StoredFile,
    WidenedModes,
    WrittenFile,
    is_same_state,
    store_file,
)
from freehold.history.version_recorder import VersionRecorder

_MAX_OPEN_FOLDERS = 64

NamePath = tuple[bytes, ...]


class TreeScan:
    """One scan. What it finds is in `recorder` and, through it, in the caller's transaction.

    `trusted` has files that a restore has just written; they are not read again while they are unchanged.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        contents: ContentStore,
        roots: Mapping[bytes, Path],
        entry: int,
        limits: SnapshotLimits,
        trusted: Mapping[int, WrittenFile] | None = None,
        save: Callable[[], None] = lambda: None,
        ignored: IgnoreMatcher | None = None,
        adopted: Mapping[int, int] | None = None,
    ) -> None:
        self._db = db
        self._contents = contents
        self._roots = roots
        self._limits = limits
        self._trusted = trusted or {}
        self._ignored = ignored
        self.recorder = VersionRecorder(db, contents, entry, save, adopted=adopted or {})
        self._links: dict[int, StoredFile] = {}
        self._modes = WidenedModes()
        self._handles = FolderHandles(roots, self._modes)
        self._places = self.recorder.places
        self._paths = self._places.begin_paths()

    def scan_all(self) -> None:
        """Scan everything under every root."""
        try:
            for name in self._roots:
                self._scan_root(name)
            self.recorder.flush()
            self._finish_links(set())
            self.recorder.record_times()
            self.recorder.flush()
        finally:
            self._modes.put_back()

    def scan_paths(self, dirty: Iterable[tuple[NamePath, bool]]) -> None:
        """Scan only these paths; a path with True also with everything below it."""
        self.recorder.remember_seen()
        by_folder: dict[NamePath, dict[bytes, bool]] = {}
        ignored = IgnoredFolders(self._ignored) if self._ignored is not None else None
        for path, deep in dirty:
            if ignored is not None and ignored.has(path[:-1]):
                continue
            names = by_folder.setdefault(path[:-1], {})
            names[path[-1]] = names.get(path[-1], False) or deep
        done: set[NamePath] = set()
        try:
            for folder in sort_in_slices(by_folder, lambda path: path):
                self._scan_names(folder, by_folder[folder], done)
            self.recorder.flush()
            self._finish_links(done)
            self.recorder.record_times()
            self.recorder.flush()
        finally:
            self._handles.close()
            self._modes.put_back()

    # Roots.

    def _scan_root(self, name: bytes) -> None:
        place, fresh = self.recorder.find_or_add_place(0, name)
        row = None if fresh else self._places.live(place)
        try:
            handle = self._modes.open_root(self._roots[name])
        except FileNotFoundError:
            self.recorder.record_removal(place, row)
            return
        try:
            found = os.fstat(handle)
            self.recorder.record(place, row, StoredFile(found, None, FLAG_COMPLETE), (name,))
            self._scan_folder(handle, place, fresh, (name,), found.st_dev)
        finally:
            os.close(handle)

    def _record_root(self, name: bytes) -> bool:
        """Record only the root's own mode and time. False: it appeared or disappeared and must be scanned as a whole."""
        place = self._places.find_child(0, name)
        row = self._places.live(place) if place is not None else None
        if place is None or row is None:
            return False
        try:
            handle = self._modes.open_root(self._roots[name])
        except OSError:
            return False
        try:
            self.recorder.record(place, row, StoredFile(os.fstat(handle), None, FLAG_COMPLETE), (name,))
        finally:
            os.close(handle)
        return True

    # Dirty paths.

    def _finish_links(self, done: set[NamePath]) -> None:
        """Look at the other names of each file that got its second name or lost one. A scan of everything has seen them.

        The kernel reports each name that is made or removed, so one of the names that are left is enough.
        """
        links = self.recorder.links
        looked_at: set[int] = set()
        while links.touched or links.joined:
            if links.joined:
                names = self._places.list_single_names(links.joined.pop())
            else:
                node = links.touched.pop()
                names = self._places.list_live_names(node, 1)
                if not names:
                    links.end(node)
            for place in names:
                if self.recorder.is_partial and place not in looked_at:
                    looked_at.add(place)
                    path = self._places.path(place)
                    self._scan_names(path[:-1], {path[-1]: False}, done, again=True)
                    self.recorder.flush()

    def _scan_names(
        self, folder: NamePath, names: dict[bytes, bool], done: set[NamePath], *, again: bool = False
    ) -> None:
        if not folder:
            for name in self._roots.keys() & names.keys():
                self.recorder.flush()
                if names[name] or not self._record_root(name):
                    self._scan_root(name)
            return
        reached = self._open_nearest(folder)
        if isinstance(reached, tuple):
            if reached not in done:
                done.add(reached)
                self._scan_names(reached[:-1], {reached[-1]: True}, done)
            return
        above = os.fstat(reached)
        self.recorder.flush()
        place = self._paths.find(folder)
        if place is None or (row := self._places.live(place)) is None or not row.is_folder:
            # The folder is new and was not scanned yet: scan all of it.
            if folder not in done:
                done.add(folder)
                self._scan_names(folder[:-1], {folder[-1]: True}, done)
            return
        if not self.recorder.has_seen(place):
            self.recorder.record(place, row, StoredFile(above, None, FLAG_COMPLETE), folder)
        known = self._places.find_names(place, list(names))
        for name, deep in names.items():
            inner, live = known.get(name, (None, None))
            self._scan_name(reached, above.st_dev, place, (*folder, name), inner, live, deep=deep, again=again)

    def _open_nearest(self, folder: NamePath) -> int | NamePath:
        """A handle on the folder, or the first part of its path that is not a folder any more."""
        if folder[0] not in self._roots:
            return folder[:1]
        try:
            return self._handles.enter(folder)
        except OSError:
            return folder[: self._handles.depth + 1]

    def _scan_name(
        self,
        handle: int,
        dev: int,
        parent: int,
        path: NamePath,
        place: int | None,
        row: PathVersion | None,
        *,
        deep: bool,
        again: bool,
    ) -> None:
        """`place` and `row` are what is known of the name: its place and its live version."""
        name = path[-1]
        try:
            found = os.stat(name, dir_fd=handle, follow_symlinks=False)
        except OSError:
            if place is not None:
                self.recorder.record_removal(place, row)
            if self._ignored is not None and (self._ignored(path, stat.S_IFDIR) or self._ignored(path, stat.S_IFREG)):
                self.recorder.folders_with_ignored.add(parent)
            return
        if self._ignored is not None and self._ignored(path, found.st_mode):
            self.recorder.folders_with_ignored.add(parent)
            return
        fresh = place is None
        if place is None:
            place = self.recorder.add_place(parent, name)
        elif self.recorder.has_seen(place) and not deep and not again:
            return
        if self._record_name(handle, name, found, place, row, path) and (deep or row is None or not row.is_folder):
            self._scan_below(handle, name, place, fresh, path, dev)

    def _scan_below(self, handle: int, name: bytes, place: int, fresh: bool, path: NamePath, dev: int) -> None:
        try:
            inner = self._modes.open_folder(handle, name)
        except OSError:
            return  # it was replaced, and that is an event of its own
        try:
            self.recorder.flush()
            self._scan_folder(inner, place, fresh, path, dev)
        finally:
            os.close(inner)

    # Folders, depth first, with a bounded number of open handles.

    def _scan_folder(self, handle: int, place: int, fresh: bool, path: NamePath, dev: int) -> None:
        frames: list[tuple[int, list[tuple[bytes, int, bool]]]] = [
            (os.dup(handle), self._scan_names_in(handle, place, fresh, path))
        ]
        names: list[bytes] = []
        try:
            while frames:
                upper, waiting = frames[-1]
                if not waiting:
                    frames.pop()
                    if names:
                        names.pop()
                    if upper >= 0:
                        os.close(upper)
                    continue
                name, inner_place, inner_fresh = waiting.pop()
                if upper < 0:
                    try:
                        upper = self._modes.open_path(handle, tuple(names))
                    except OSError:
                        waiting.clear()
                        continue
                    frames[-1] = (upper, waiting)
                try:
                    inner = self._modes.open_folder(upper, name)
                except OSError:
                    continue  # replaced or removed since; its event or the next scan covers it
                names.append(name)
                frames.append((inner, []))
                if os.fstat(inner).st_dev == dev:
                    frames[-1] = (inner, self._scan_names_in(inner, inner_place, inner_fresh, (*path, *names)))
                if len(frames) > _MAX_OPEN_FOLDERS:
                    old, rest = frames[-_MAX_OPEN_FOLDERS - 1]
                    if old >= 0:
                        os.close(old)
                        frames[-_MAX_OPEN_FOLDERS - 1] = (-1, rest)
        finally:
            for open_handle, _ in frames:
                if open_handle >= 0:
                    os.close(open_handle)

    def _scan_names_in(self, handle: int, place: int, fresh: bool, path: NamePath) -> list[tuple[bytes, int, bool]]:
        """Record every name in one folder. Returns the folders among them."""
        known: dict[bytes, PathVersion] = {}
        dead: dict[bytes, int] = {}
        if not fresh:
            known, dead = self._places.inside(place)
        folders: list[tuple[bytes, int, bool]] = []
        with os.scandir(handle) as entries:
            for entry in entries:
                name = os.fsencode(entry.name)
                row = known.pop(name, None)
                try:
                    found = entry.stat(follow_symlinks=False)
                except OSError:
                    if row is not None:
                        known[name] = row
                    continue
                if self._ignored is not None and self._ignored((*path, name), found.st_mode):
                    self.recorder.folders_with_ignored.add(place)
                    continue
                if row is not None:
                    inner, inner_fresh = row.place, False
                elif name in dead:
                    inner, inner_fresh = dead[name], False
                else:
                    inner, inner_fresh = self.recorder.add_place(place, name), True
                if self._record_name(handle, name, found, inner, row, (*path, name)):
                    folders.append((name, inner, inner_fresh))
        for row in known.values():
            self.recorder.record_removal(row.place, row)
        self.recorder.flush_if_large()
        return folders

    # One name.

    def _record_name(
        self, handle: int, name: bytes, found: os.stat_result, place: int, row: PathVersion | None, path: NamePath
    ) -> bool:
        """Record one name. True when it is a folder that must be scanned."""
        mode = found.st_mode
        if stat.S_ISDIR(mode):
            self.recorder.record(place, row, StoredFile(found, None, FLAG_COMPLETE), path)
            return True
        if row is not None and row.is_folder:
            self.recorder.record_removal_below(place)
        if (
            row is not None
            and row.ctime == found.st_ctime_ns
            and row.ino == found.st_ino
            and row.mtime == found.st_mtime_ns
            and row.size == found.st_size
            and row.mode == mode
            and row.nlink == found.st_nlink
            and not (row.flag and self._limits.refuse(found, 0) is None)
        ):
            self.recorder.mark_seen(place)
            return False
        stored = self._find_trusted(place, found) or self._store(handle, name, found, row)
        if stored is None or stat.S_ISDIR(stored.stat.st_mode):
            # It is gone, or it became a folder since it was listed: its event or the next scan finds that folder.
            self.recorder.record_removal(place, row)
        else:
            self.recorder.record(place, row, stored, path)
        return False

    def _store(self, handle: int, name: bytes, found: os.stat_result, row: PathVersion | None) -> StoredFile | None:
        """A file with several names is read once in a scan."""
        linked = found.st_nlink > 1 and stat.S_ISREG(found.st_mode)
        known = self._links.get(found.st_ino) if linked else None
        if known is not None and is_same_state(known.stat, found):
            return known
        same = (
            row is not None and row.content is not None and (row.size, row.mtime) == (found.st_size, found.st_mtime_ns)
        )
        stored = store_file(self._contents, self._limits, handle, name, found, may_be_stored=same)
        if linked and stored is not None:
            self._links[stored.stat.st_ino] = stored
        return stored

    def _find_trusted(self, place: int, found: os.stat_result) -> StoredFile | None:
        """What a restore has just written need not be read again while it is the same inode with the same times."""
        trusted = self._trusted.get(place)
        if trusted is None or not trusted.is_still(found):
            return None
        return StoredFile(found, trusted.target.content, trusted.target.flag)
