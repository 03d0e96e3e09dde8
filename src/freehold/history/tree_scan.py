"""Taking one snapshot: compare the tree with the last known state, store what differs, write it down as versions of places."""

import os
import sqlite3
import stat
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from freehold.history.contents import Contents
from freehold.history.ignoring import Ignored
from freehold.history.model import FLAG_FINE, FLAG_UNSETTLED, FLAG_WORDS, Version
from freehold.history.names import show_name
from freehold.history.reading import FOLDER_FLAGS, Limits, Taken, open_folder, open_path, take
from freehold.history.states import Places

# A change within one clock tick of the reading may leave the same ctime; such a file is read again by the next scan.
_RACY = 50_000_000
_FLUSH_ROWS = 4000
_SAVE_BYTES = 64 << 20
_HANDLES_KEPT = 64
_MAX_NOTES = 20


class Take:
    """One snapshot under way, in the caller's transaction and under its lock.

    Rows are written with `born`/`died` = `entry`; unless the caller completes that entry, the next open forgets them.
    `save` commits what is there so far and begins anew, so that a large snapshot needs no large journal.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        contents: Contents,
        roots: Mapping[bytes, Path],
        entry: int,
        limits: Limits,
        trusted: Mapping[int, Taken] | None = None,
        save: Callable[[], None] = lambda: None,
        ignored: Ignored | None = None,
    ) -> None:
        self._db = db
        self._contents = contents
        self._roots = roots
        self._entry = entry
        self._limits = limits
        self._trusted = trusted or {}
        self._save = save
        self._ignored = ignored
        self._unsaved = 0
        self._places = Places(db)
        self._next_place = db.execute("SELECT coalesce(max(id), 0) + 1 FROM place").fetchone()[0]
        self._next_version = db.execute("SELECT coalesce(max(id), 0) + 1 FROM version").fetchone()[0]
        self._new_places: list[tuple[int, int, bytes]] = []
        self._new_versions: list[Version] = []
        # Only a visit looks twice at a place; a scan of everything need not remember where it was.
        self._seen: set[int] | None = None
        self._inodes: set[int] = set()
        self._times: dict[int, tuple[Version, Version]] = {}
        self._hiding: set[int] = set()
        self._began = time.time_ns() - _RACY
        self.differs = False
        self.added = self.changed = self.removed = 0
        self.notes: list[str] = []

    # The two ways of looking: everything, or what is known to be dirty.

    def scan(self) -> None:
        """Look at everything under every root."""
        for name in self._roots:
            self._scan_root(name)
        self._settle_times()
        self._flush()

    def _scan_root(self, name: bytes) -> None:
        place, fresh = self._place(0, name)
        row = None if fresh else self._places.live(place)
        try:
            handle = os.open(self._roots[name], FOLDER_FLAGS)
        except FileNotFoundError:
            self._gone(place, row)
            return
        try:
            found = os.fstat(handle)
            self._record(place, row, Taken(found, None, FLAG_FINE), (name,))
            self._scan_folder(handle, place, fresh, (name,), found.st_dev)
        finally:
            os.close(handle)

    def _record_root(self, name: bytes) -> bool:
        """Only a kept folder's own mode and time; False: it came or went, and all of it needs a look."""
        place = self._places.find_child(0, name)
        row = self._places.live(place) if place is not None else None
        if place is None or row is None:
            return False
        try:
            handle = os.open(self._roots[name], FOLDER_FLAGS)
        except OSError:
            return False
        try:
            self._record(place, row, Taken(os.fstat(handle), None, FLAG_FINE), (name,))
        finally:
            os.close(handle)
        return True

    def visit(self, dirty: Iterable[tuple[tuple[bytes, ...], bool]]) -> None:
        """Look at the dirty paths only; a path with True also at everything below it."""
        self._seen = set()
        by_folder: dict[tuple[bytes, ...], dict[bytes, bool]] = {}
        for path, deep in dirty:
            if self._ignored is not None and any(
                self._ignored(path[:depth], stat.S_IFDIR) for depth in range(2, len(path))
            ):
                continue
            names = by_folder.setdefault(path[:-1], {})
            names[path[-1]] = names.get(path[-1], False) or deep
        done: set[tuple[bytes, ...]] = set()
        for folder in sorted(by_folder):
            self._visit_names(folder, by_folder[folder], done)
        self._flush()
        self._visit_partners(done)
        self._settle_times()
        self._flush()

    def _visit_partners(self, done: set[tuple[bytes, ...]]) -> None:
        """A write or unlink through one name of a file with several names concerns them all, but is told for one."""
        for ino in self._inodes:
            for (place,) in self._db.execute(
                "SELECT place FROM version WHERE died IS NULL AND ino = ?", (ino,)
            ).fetchall():
                if not self._has_seen(place):
                    path = self._places.path(place)
                    self._visit_names(path[:-1], {path[-1]: False}, done)
        self._inodes.clear()

    def _visit_names(self, folder: tuple[bytes, ...], names: dict[bytes, bool], done: set[tuple[bytes, ...]]) -> None:
        if not folder:
            for name in self._roots.keys() & names.keys():
                self._flush()
                if names[name] or not self._record_root(name):
                    self._scan_root(name)
            return
        reached = self._reach(folder)
        if isinstance(reached, tuple):
            if reached not in done:
                done.add(reached)
                self._visit_names(reached[:-1], {reached[-1]: True}, done)
            return
        try:
            above = os.fstat(reached)
            place = self._find(folder)
            if place is None or (row := self._places.live(place)) is None or not row.is_folder:
                # Its own parent was never looked at since it appeared: take all of it.
                if folder not in done:
                    done.add(folder)
                    self._visit_names(folder[:-1], {folder[-1]: True}, done)
                return
            if not self._has_seen(place):
                self._record(place, row, Taken(above, None, FLAG_FINE), folder)
            for name, deep in names.items():
                self._visit_name(reached, above.st_dev, place, name, deep, folder)
        finally:
            os.close(reached)

    def _reach(self, folder: tuple[bytes, ...]) -> int | tuple[bytes, ...]:
        """A handle on the folder, or the part of its path that is no longer a folder."""
        root = self._roots.get(folder[0])
        if root is None:
            return folder[:1]
        try:
            handle = os.open(root, FOLDER_FLAGS)
        except OSError:
            return folder[:1]
        for depth, part in enumerate(folder[1:], 2):
            try:
                handle, upper = open_folder(handle, part), handle
            except OSError:
                os.close(handle)
                return folder[:depth]
            os.close(upper)
        return handle

    def _find(self, path: tuple[bytes, ...]) -> int | None:
        self._flush()
        return self._places.find(path)

    def _visit_name(
        self, handle: int, dev: int, parent: int, name: bytes, deep: bool, folder: tuple[bytes, ...]
    ) -> None:
        try:
            found = os.stat(name, dir_fd=handle, follow_symlinks=False)
        except OSError:
            known = self._places.find_child(parent, name)
            if known is not None:
                self._gone(known, self._places.live(known))
            if self._ignored is not None:
                gone = (*folder, name)
                if self._ignored(gone, stat.S_IFDIR) or self._ignored(gone, stat.S_IFREG):
                    self._hiding.add(parent)
            return
        if self._ignored is not None and self._ignored((*folder, name), found.st_mode):
            self._hiding.add(parent)
            return
        place, fresh = self._place(parent, name)
        if self._has_seen(place) and not deep:
            return
        row = None if fresh else self._places.live(place)
        path = (*folder, name)
        if self._examine(handle, name, found, place, row, path) and (deep or row is None or not row.is_folder):
            self._scan_below(handle, name, place, fresh, path, dev)

    def _scan_below(self, handle: int, name: bytes, place: int, fresh: bool, path: tuple[bytes, ...], dev: int) -> None:
        try:
            inner = open_folder(handle, name)
        except OSError:
            return  # replaced since: that is an event of its own
        try:
            self._flush()
            self._scan_folder(inner, place, fresh, path, dev)
        finally:
            os.close(inner)

    # One folder after the other, children before siblings, with a bounded number of handles open.

    def _scan_folder(self, handle: int, place: int, fresh: bool, path: tuple[bytes, ...], dev: int) -> None:
        frames: list[tuple[int, list[tuple[bytes, int, bool]]]] = [
            (os.dup(handle), self._list(handle, place, fresh, path, dev))
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
                        upper = open_path(handle, tuple(names))
                    except OSError:
                        waiting.clear()
                        continue
                    frames[-1] = (upper, waiting)
                try:
                    inner = open_folder(upper, name)
                except OSError:
                    continue  # replaced or removed since it was listed; its event or the next scan tells
                names.append(name)
                frames.append((inner, []))
                if os.fstat(inner).st_dev == dev:
                    frames[-1] = (inner, self._list(inner, inner_place, inner_fresh, (*path, *names), dev))
                if len(frames) > _HANDLES_KEPT:
                    old, rest = frames[-_HANDLES_KEPT - 1]
                    if old >= 0:
                        os.close(old)
                        frames[-_HANDLES_KEPT - 1] = (-1, rest)
        finally:
            for open_handle, _ in frames:
                if open_handle >= 0:
                    os.close(open_handle)

    def _list(
        self, handle: int, place: int, fresh: bool, path: tuple[bytes, ...], dev: int
    ) -> list[tuple[bytes, int, bool]]:
        """Look at every name in one folder; returns the folders among them."""
        known: dict[bytes, Version] = {}
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
                    self._hiding.add(place)
                    continue
                if row is not None:
                    inner, inner_fresh = row.place, False
                elif name in dead:
                    inner, inner_fresh = dead[name], False
                else:
                    inner, inner_fresh = self._new_place(place, name), True
                if self._examine(handle, name, found, inner, row, (*path, name)):
                    folders.append((name, inner, inner_fresh))
        for row in known.values():
            self._gone(row.place, row)
        if len(self._new_versions) > _FLUSH_ROWS or self._contents.pending_bytes > 4 << 20:
            self._flush()
        return folders

    # What was found, against what was known.

    def _examine(
        self, handle: int, name: bytes, found: os.stat_result, place: int, row: Version | None, path: tuple[bytes, ...]
    ) -> bool:
        """Record one name; True when it is a folder to look into."""
        mode = found.st_mode
        if stat.S_ISDIR(mode):
            self._record(place, row, Taken(found, None, FLAG_FINE), path)
            return True
        if row is not None and row.is_folder:
            self._gone_below(place)
        if (
            row is not None
            and row.ctime == found.st_ctime_ns
            and row.ino == found.st_ino
            and row.mtime == found.st_mtime_ns
            and row.size == found.st_size
            and row.mode == mode
            and row.nlink == found.st_nlink
        ):
            self._saw(place)
            return False
        taken = self._trust(place, found) or take(self._contents, self._limits, handle, name, found)
        if taken is None:
            self._gone(place, row)
        elif stat.S_ISDIR(taken.stat.st_mode):
            self._gone(
                place, row
            )  # became a folder between listing and reading; found as one by its event or the next scan
        else:
            self._record(place, row, taken, path)
        return False

    def _trust(self, place: int, found: os.stat_result) -> Taken | None:
        """What a restore just wrote need not be read again, if it is still the very inode and time it left behind."""
        trusted = self._trusted.get(place)
        if trusted is None:
            return None
        left = trusted.stat
        same = (left.st_ino, left.st_mtime_ns, left.st_ctime_ns, left.st_size, left.st_mode) == (
            found.st_ino, found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_mode,
        )  # fmt: skip
        return Taken(found, trusted.content, trusted.flag) if same else None

    def _record(self, place: int, row: Version | None, taken: Taken, path: tuple[bytes, ...]) -> None:
        self._saw(place)
        found = taken.stat
        ctime = found.st_ctime_ns if found.st_ctime_ns < self._began and taken.flag != FLAG_UNSETTLED else 0
        folder = stat.S_ISDIR(found.st_mode)
        new = Version(
            self._next_version, place, self._entry, None, found.st_mode, found.st_mtime_ns, 0 if folder else found.st_size,
            taken.content, taken.flag, found.st_ino, ctime, 1 if folder else found.st_nlink,
        )  # fmt: skip
        if self._seen is not None and not folder and (found.st_nlink > 1 or (row is not None and row.nlink > 1)):
            self._inodes.add(found.st_ino)
            if row is not None and row.nlink > 1:
                self._inodes.add(row.ino)
        if taken.flag != FLAG_FINE and len(self.notes) < _MAX_NOTES:
            self.notes.append(f"{show_name(b'/'.join(path))} {FLAG_WORDS[taken.flag]}")
        if row is not None and row.same_as(new):
            if (row.ino, row.ctime, row.nlink) != (new.ino, new.ctime, new.nlink):
                self._db.execute(
                    "UPDATE version SET ino = ?, ctime = ?, nlink = ? WHERE id = ?",
                    (new.ino, new.ctime, new.nlink, row.id),
                )
            return
        if self._ignored is not None:
            self._times.pop(place, None)
            if row is not None and folder and row.same_as(new._replace(mtime=row.mtime)):
                self._times[place] = (row, new)
                return
        if row is None:
            self.added += 1
        else:
            if not (row.is_folder and folder and row.mode == new.mode):
                self.changed += 1
            self._end(row)
        self.differs = True
        self._next_version += 1
        self._new_versions.append(new)

    def _settle_times(self) -> None:
        """A folder's own time is no change if what is ignored in it may have moved it; with another change it is kept."""
        self.differs = self.differs or not self._times.keys() <= self._hiding
        for row, new in self._times.values() if self.differs else ():
            self._end(row)
            self._new_versions.append(new._replace(id=self._next_version))
            self._next_version += 1
        self._times.clear()

    def _saw(self, place: int) -> None:
        if self._seen is not None:
            self._seen.add(place)

    def _has_seen(self, place: int) -> bool:
        return self._seen is not None and place in self._seen

    def _gone(self, place: int, row: Version | None) -> None:
        if row is None:
            return
        self._saw(place)
        self._times.pop(place, None)
        if row.is_folder:
            self._gone_below(place)
        if self._seen is not None and row.nlink > 1:
            self._inodes.add(row.ino)
        self.removed += 1
        self.differs = True
        self._end(row)

    def _gone_below(self, place: int) -> None:
        self._flush()
        below = [place]
        while below:
            rows = self._places.live_children(below.pop())
            for row in rows:
                self._saw(row.place)
                self._times.pop(row.place, None)
                self.removed += 1
                self.differs = True
                if row.is_folder:
                    below.append(row.place)
                elif row.nlink > 1:
                    self._inodes.add(row.ino)
                self._end(row)

    def _end(self, row: Version) -> None:
        if row.born == self._entry:
            self._flush()
            self._db.execute("DELETE FROM version WHERE id = ?", (row.id,))
        else:
            self._db.execute("UPDATE version SET died = ? WHERE id = ?", (self._entry, row.id))

    # Rows on their way to SQLite.

    def _place(self, parent: int, name: bytes) -> tuple[int, bool]:
        """The id of a name in a folder, and whether it was never seen before."""
        known = self._places.find_child(parent, name)
        return (known, False) if known is not None else (self._new_place(parent, name), True)

    def _new_place(self, parent: int, name: bytes) -> int:
        place: int = self._next_place
        self._next_place += 1
        self._new_places.append((place, parent, name))
        return place

    def _flush(self) -> None:
        if self._contents.pending_bytes or self._new_places or self._new_versions:
            self._unsaved += self._contents.pending_bytes
            self._contents.flush()
            self._db.executemany("INSERT INTO place VALUES (?, ?, ?)", self._new_places)
            self._db.executemany("INSERT INTO version VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self._new_versions)
            self._new_places.clear()
            self._new_versions.clear()
            if self._unsaved > _SAVE_BYTES:
                self._unsaved = 0
                self._save()
