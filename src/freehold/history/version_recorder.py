"""Records what a scan finds: compares it with the last known version of each place and writes the differences as rows."""

import sqlite3
import stat
import time
from collections.abc import Callable, Mapping

from freehold.history.contents import ContentStore
from freehold.history.linked_files import LinkedFiles
from freehold.history.model import FLAG_CHANGING, FLAG_COMPLETE, FLAG_WORDS, PathVersion
from freehold.history.names import show_name
from freehold.history.states import Places
from freehold.history.tree_reader import StoredFile

# A change within one clock tick of the reading may leave the same ctime; the next scan reads such a file again.
_CLOCK_TICK_NS = 50_000_000
_FLUSH_ROWS = 4000
_FLUSH_BYTES = 4 << 20
_SAVE_BYTES = 64 << 20
_MAX_NOTES = 20
_ROW_BYTES = 120
"""What a row of a place or a version needs on disk with its indexes, about."""

NamePath = tuple[bytes, ...]


class VersionRecorder:
    """Used for one entry, in the caller's transaction and under its lock.

    Rows are written with `born` or `died` = `entry`; if the caller never completes that entry, the next open removes them.
    `save` commits what is written so far and begins a new transaction, so that a large snapshot needs no large journal.
    What differs in its time alone is recorded by `record_times`, after everything else.
    """

    def __init__(
        self,
        db: sqlite3.Connection,
        contents: ContentStore,
        entry: int,
        save: Callable[[], None],
        *,
        adopted: Mapping[int, int],
    ) -> None:
        self._db = db
        self._contents = contents
        self._entry = entry
        self._save = save
        self._unsaved = 0
        self.places = Places(db)
        self._next_place = db.execute("SELECT coalesce(max(id), 0) + 1 FROM place").fetchone()[0]
        self._next_version = db.execute("SELECT coalesce(max(id), 0) + 1 FROM version").fetchone()[0]
        self._new_places: list[tuple[int, int, bytes]] = []
        self._new_versions: list[PathVersion] = []
        self._ended: list[tuple[int, int]] = []
        self._seen: set[int] | None = None
        self._times: dict[int, tuple[PathVersion, PathVersion]] = {}
        self._began = time.time_ns() - _CLOCK_TICK_NS
        self.links = LinkedFiles(db, entry, adopted)
        self.folders_with_ignored: set[int] = set()
        self.differs = False
        self.has_times = False
        """Whether a time was recorded. Times alone are no reason for an entry."""
        self.added = self.changed = self.removed = 0
        self.notes: list[str] = []
        self.flags: set[int] = set()

    def remember_seen(self) -> None:
        """Needed when a place can be reached twice. A scan of everything reaches each place once."""
        self._seen = set()

    @property
    def is_partial(self) -> bool:
        """Whether only some paths are scanned."""
        return self._seen is not None

    def mark_seen(self, place: int) -> None:
        if self._seen is not None:
            self._seen.add(place)

    def has_seen(self, place: int) -> bool:
        return self._seen is not None and place in self._seen

    # Places.

    def find_or_add_place(self, parent: int, name: bytes) -> tuple[int, bool]:
        """The id of a name in a folder, and whether it is new."""
        known = self.places.find_child(parent, name)
        return (known, False) if known is not None else (self.add_place(parent, name), True)

    def add_place(self, parent: int, name: bytes) -> int:
        place: int = self._next_place
        self._next_place += 1
        self._new_places.append((place, parent, name))
        return place

    # Versions.

    def record(self, place: int, row: PathVersion | None, stored: StoredFile, path: NamePath) -> None:
        """`row` is the last known version of the place; `stored` is what was found there."""
        self.mark_seen(place)
        found = stored.stat
        noted = stored.content is None and stored.flag != FLAG_COMPLETE  # it was not read, so nothing was missed
        known = (found.st_ctime_ns < self._began or stored.forced or noted) and stored.flag != FLAG_CHANGING
        ctime = found.st_ctime_ns if known else 0
        folder = stat.S_ISDIR(found.st_mode)
        if stored.flag != FLAG_COMPLETE:
            self.flags.add(stored.flag)
        if stored.flag != FLAG_COMPLETE and len(self.notes) < _MAX_NOTES:
            self.notes.append(f"{show_name(b'/'.join(path))} {FLAG_WORDS[stored.flag]}")
        node = self._record_node(row, stored, ctime) if found.st_nlink > 1 and stat.S_ISREG(found.st_mode) else 0
        if node and row is not None and row.node == node:
            return
        new = PathVersion(
            self._next_version, place, self._entry, None, found.st_mode, found.st_mtime_ns, 0 if folder else found.st_size,
            stored.content, stored.flag, found.st_ino, ctime, 1 if folder else found.st_nlink, node,
        )  # fmt: skip
        self._times.pop(place, None)
        if row is not None and (row.is_same_as(new) or _is_same_noted(row, new)):
            if row[7:] != new[7:]:
                self._db.execute(
                    "UPDATE version SET content = ?, flag = ?, ino = ?, ctime = ?, nlink = ? WHERE id = ?",
                    (*new[7:12], row.id),
                )
            return
        if row is not None and row.differs_only_in_time(new):
            self._times[place] = (row, new)
            return
        if row is None:
            self.added += 1
        else:
            self.changed += 1
            self._end_version(row)
        self.differs = True
        self._next_version += 1
        self._new_versions.append(new)

    def _record_node(self, row: PathVersion | None, stored: StoredFile, ctime: int) -> int:
        before = row.node if row is not None and not self.is_partial else 0
        node, changed = self.links.record(stored, ctime, before)
        self.changed += changed
        self.differs = self.differs or changed > 0
        return node

    def record_times(self) -> None:
        """The time of a folder that an ignored file in it may have set is recorded only together with a change."""
        if not self.differs:
            for place in self.folders_with_ignored:
                self._times.pop(place, None)
        for row, new in self._times.values():
            self._end_version(row)
            self._new_versions.append(new._replace(id=self._next_version))
            self._next_version += 1
        self.has_times = bool(self._times) or self.links.has_times
        self._times.clear()

    def move_times(self, newest: int, before: int) -> None:
        """What was recorded becomes a part of the entry `newest`, which comes after `before`: only times differ from it."""
        for table in ("version", "node_version"):
            self._db.execute(f"DELETE FROM {table} WHERE died = ? AND born > ?", (self._entry, before))  # noqa: S608
            self._db.execute(f"UPDATE {table} SET died = ? WHERE died = ?", (newest, self._entry))  # noqa: S608
            self._db.execute(f"UPDATE {table} SET born = ? WHERE born = ?", (newest, self._entry))  # noqa: S608

    def record_removal(self, place: int, row: PathVersion | None) -> None:
        """The place and everything below it is gone. `row` is its last known version."""
        if row is None:
            return
        self.mark_seen(place)
        self._times.pop(place, None)
        if row.is_folder:
            self.record_removal_below(place)
        self.removed += 1
        self.differs = True
        self._end_version(row)

    def record_removal_below(self, place: int) -> None:
        self.flush()
        below = [place]
        while below:
            rows = self.places.live_children(below.pop())
            for row in rows:
                self.mark_seen(row.place)
                self._times.pop(row.place, None)
                self.removed += 1
                self.differs = True
                if row.is_folder:
                    below.append(row.place)
                self._end_version(row)

    def _end_version(self, row: PathVersion) -> None:
        if row.node:
            self.links.touched.add(row.node)
        if row.born == self._entry:
            self.flush()
            self._db.execute("DELETE FROM version WHERE id = ?", (row.id,))
        else:
            self._ended.append((self._entry, row.id))
            if row.node:
                self.flush()  # its other names are counted

    # Rows that are not in SQLite yet.

    def flush_if_large(self) -> None:
        if len(self._new_versions) + len(self._ended) > _FLUSH_ROWS or self._contents.pending_bytes > _FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        if self._contents.pending_bytes or self._new_places or self._new_versions or self._ended:
            self._unsaved += self._contents.pending_bytes
            self._contents.written_bytes += _ROW_BYTES * (len(self._new_places) + len(self._new_versions))
            self._contents.flush()
            self._db.executemany("UPDATE version SET died = ? WHERE id = ?", self._ended)
            self._db.executemany("INSERT INTO place VALUES (?, ?, ?)", self._new_places)
            self._db.executemany(
                "INSERT INTO version VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", self._new_versions
            )
            self._ended.clear()
            self._new_places.clear()
            self._new_versions.clear()
            if self._unsaved > _SAVE_BYTES:
                self._unsaved = 0
                self._save()


def _is_same_noted(row: PathVersion, new: PathVersion) -> bool:
    """The content could not be stored before and is stored now, of a file that did not change since."""
    if row.content is not None or new.content is None or not row.flag or not row.ctime:
        return False
    return (row.mode, row.mtime, row.size, row.ino, row.ctime, row.node) == (
        new.mode, new.mtime, new.size, new.ino, new.ctime, new.node,
    )  # fmt: skip
