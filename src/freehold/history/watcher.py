"""Watches every folder with inotify, so that a snapshot knows which paths are dirty."""

import errno
import os
import select
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from freehold.history import inotify
from freehold.history.model import ChangeWord
from freehold.history.stream import MAX_BATCH_CHANGES, ChangeStream
from freehold.history.tree_reader import WidenedModes

MAX_DIRTY = 20_000
_PAUSE_MS = 10  # between two reads, so that a burst arrives in a few batches

NamePath = tuple[bytes, ...]


@dataclass(frozen=True)
class DirtyPaths:
    """The paths that were written to since the last call. `everything` gives the reason when a full scan is needed."""

    paths: set[NamePath]
    deep: frozenset[NamePath]
    everything: str | None
    written: frozenset[NamePath] | None
    """Names through which bytes were written, without renames; None when unknown."""


class _Folder:
    __slots__ = ("folders", "name", "parent", "watch")

    def __init__(self, parent: "_Folder | None", name: bytes, watch: int) -> None:
        self.parent = parent
        self.name = name
        self.watch = watch
        self.folders: dict[bytes, _Folder] = {}

    def path(self) -> NamePath:
        parts: list[bytes] = []
        at: _Folder | None = self
        while at is not None:
            parts.append(at.name)
            at = at.parent
        return tuple(reversed(parts))


class Watcher:
    """Thread-safe. `start` sets the watches and starts the reading thread; `close` ends both.

    When the kernel has no watches left, `degraded` has the reason and every `drain_events` requires a full scan.
    """

    def __init__(self, roots: Mapping[bytes, Path], stream: ChangeStream) -> None:
        self._roots = roots
        self._stream = stream
        self._lock = threading.RLock()
        self._inotify: inotify.Inotify | None = None
        self._by_watch: dict[int, _Folder] = {}
        self._tops: dict[bytes, _Folder] = {}
        self._paths: set[NamePath] = set()
        self._deep: set[NamePath] = set()
        self._written: set[NamePath] | None = None
        self._everything: str | None = "first scan"
        self._unpublished: dict[bytes, ChangeWord] = {}
        self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="history-watch", daemon=True)
        self.degraded: str | None = None
        self.last_activity = time.monotonic()

    def start(self) -> None:
        with self._lock:
            self._rebuild("first scan")
        self._thread.start()

    def close(self) -> None:
        self._closing = True
        os.eventfd_write(self._wake, 1)
        if self._thread.ident is not None:
            self._thread.join()
        with self._lock:
            if self._inotify is not None:
                self._inotify.close()
                self._inotify = None
            os.close(self._wake)

    @property
    def is_dirty(self) -> bool:
        return bool(self._paths) or self._everything is not None

    def drain_events(self) -> DirtyPaths:
        """Everything written before this call, exactly once. A caller that fails to record it must call `require_full_scan`."""
        with self._lock:
            self._read_queue()
            self._publish()
            if self.degraded is None and (self._inotify is None or len(self._tops) < len(self._roots)):
                self._rebuild(self._everything or "a persistent folder was missing")
            everything = self._everything or (self.degraded and f"no watches: {self.degraded}")
            written = None if self._written is None else frozenset(self._written)
            found = DirtyPaths(self._paths, frozenset(self._deep), everything, written)
            self._paths, self._deep, self._written, self._everything = set(), set(), set(), None
            return found

    def read_events(self) -> None:
        """Read the kernel's queue during a long restore, so that it does not overflow."""
        with self._lock:
            self._read_queue()

    def require_full_scan(self, reason: str) -> None:
        """The next `drain_events` returns this reason for a full scan."""
        with self._lock:
            self._everything = reason

    # The reading thread.

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._wake, select.POLLIN)
        registered = -1
        while not self._closing:
            with self._lock:
                handle = self._inotify.handle if self._inotify is not None else -1
            if handle != registered:
                if registered >= 0:
                    poll.unregister(registered)
                if handle >= 0:
                    poll.register(handle, select.POLLIN)
                registered = handle
            ready = poll.poll()
            if self._closing:
                return
            if any(descriptor == self._wake for descriptor, _ in ready):
                os.eventfd_read(self._wake)
            with self._lock:
                self._read_queue()
                self._publish()
            if registered >= 0:
                quiet = select.poll()
                quiet.register(self._wake, select.POLLIN)
                quiet.poll(_PAUSE_MS)

    def _publish(self) -> None:
        if self._unpublished:
            self._stream.publish(self._unpublished)
            self._unpublished = {}

    def _read_queue(self) -> None:
        if self._inotify is None:
            return
        events = self._inotify.read()
        if not events:
            return
        self.last_activity = time.monotonic()
        for event in events:
            if event.mask & inotify.OVERFLOW:
                self._rebuild("the kernel's queue of events overflowed")
                self._stream.relist()
                break
            self._handle_event(event)

    def _handle_event(self, event: inotify.InotifyEvent) -> None:
        folder = self._by_watch.get(event.watch)
        mask = event.mask
        if folder is None:
            return
        if mask & inotify.IGNORED:
            del self._by_watch[event.watch]
            return
        if mask & (inotify.DELETE_SELF | inotify.MOVE_SELF | inotify.UNMOUNT):
            if folder.parent is None:
                self._everything = "a persistent folder was moved or removed"
                self._drop_watches()
            return
        if not event.name:
            self._note(folder.path(), mask, "changed")
            return
        path = (*folder.path(), event.name)
        if mask & inotify.ISDIR and mask & (inotify.DELETE | inotify.MOVED_FROM):
            self._forget(folder.folders.pop(event.name, None))
        gone = mask & (inotify.DELETE | inotify.MOVED_FROM)
        came = mask & (inotify.CREATE | inotify.MOVED_TO)
        self._note(path, mask, "removed" if gone else "added" if came else "changed")
        if mask & inotify.ISDIR and came:
            self._deep.add(path)
            self._adopt(folder, path)

    def _note(self, path: NamePath, mask: int, word: ChangeWord) -> None:
        self._paths.add(path)
        if mask & (inotify.MODIFY | inotify.CLOSE_WRITE) and self._written is not None:
            self._written.add(path)
            if len(self._written) > MAX_DIRTY:
                self._written = None
        if len(self._paths) > MAX_DIRTY:
            self._paths.clear()
            self._deep.clear()
            self._everything = f"more than {MAX_DIRTY} paths changed"
        if len(self._unpublished) <= MAX_BATCH_CHANGES:
            name = b"/".join(path)
            before = self._unpublished.get(name)
            self._unpublished[name] = "added" if before == "added" and word == "changed" else word

    # The watches.

    def _drop_watches(self) -> None:
        if self._inotify is not None:
            self._inotify.close()
            self._inotify = None
            self._by_watch.clear()
            self._tops.clear()

    def _rebuild(self, reason: str) -> None:
        """Set all watches again. The full scan that this requires covers what happened in between."""
        self._drop_watches()
        self._paths.clear()
        self._deep.clear()
        self._written = None
        self._everything = reason
        try:
            self._inotify = inotify.Inotify()
            for name, root in self._roots.items():
                self._watch_root(name, root)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.ENOMEM):
                raise
            self._drop_watches()
            setting = "max_user_watches" if error.errno == errno.ENOSPC else "max_user_instances"
            self.degraded = f"the kernel limit for inotify is reached (sysctl fs.inotify.{setting})"
        os.eventfd_write(self._wake, 1)

    def _watch_root(self, name: bytes, root: Path) -> None:
        modes = WidenedModes()
        try:
            handle = modes.open_root(root)
        except OSError:
            return
        try:
            self._tops[name] = self._watch_tree(handle, None, name, modes, announce=False)
        finally:
            modes.put_back()

    def _adopt(self, parent: _Folder, path: NamePath) -> None:
        """Watch a new folder and everything in it."""
        modes = WidenedModes()
        try:
            top = modes.open_root(self._roots[path[0]])
        except OSError:
            return
        try:
            handle = modes.open_path(top, path[1:])
        except OSError:
            modes.put_back()
            return  # gone or replaced again; that is another event
        finally:
            os.close(top)
        try:
            self._forget(parent.folders.pop(path[-1], None))
            parent.folders[path[-1]] = self._watch_tree(handle, parent, path[-1], modes, announce=True)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                self._drop_watches()
                self.degraded = "the kernel limit for inotify is reached (sysctl fs.inotify.max_user_watches)"
            self._everything = "a folder could not be watched"
        finally:
            modes.put_back()

    def _watch_tree(
        self, handle: int, parent: _Folder | None, name: bytes, modes: WidenedModes, *, announce: bool
    ) -> _Folder:
        """Closes the handle. The watch is set before the folder is listed, so nothing is missed in between."""
        assert self._inotify is not None
        top: _Folder | None = None
        waiting: list[tuple[int, _Folder | None, bytes, tuple[bytes, ...]]] = [(handle, parent, name, ())]
        anchor = os.dup(handle)
        try:
            while waiting:
                at, above, called, below = waiting.pop()
                if at < 0:
                    try:
                        at = modes.open_path(anchor, below)
                    except OSError:
                        continue
                try:
                    folder = _Folder(above, called, self._inotify.add(at))
                    self._by_watch[folder.watch] = folder
                    if top is None:
                        top = folder
                    elif above is not None:
                        above.folders[called] = folder
                    inner = self._list(at, folder, announce)
                    many = len(waiting) + len(inner) > 256
                    for each in inner:
                        try:
                            waiting.append((-1 if many else modes.open_folder(at, each), folder, each, (*below, each)))
                        except OSError:
                            continue
                finally:
                    os.close(at)
        finally:
            os.close(anchor)
            for at, *_ in waiting:
                if at >= 0:
                    os.close(at)
        assert top is not None
        return top

    def _list(self, handle: int, folder: _Folder, announce: bool) -> list[bytes]:
        inner: list[bytes] = []
        found: list[bytes] = []
        with os.scandir(handle) as entries:
            for entry in entries:
                name = os.fsencode(entry.name)
                if entry.is_dir(follow_symlinks=False):
                    inner.append(name)
                if announce and len(self._unpublished) + len(found) <= MAX_BATCH_CHANGES:
                    found.append(name)
        if found:
            path = folder.path()
            for name in found:
                self._unpublished.setdefault(b"/".join((*path, name)), "added")
        return inner

    def _forget(self, folder: _Folder | None) -> None:
        """Stop watching a folder that was moved or removed, and everything below it."""
        waiting = [folder] if folder is not None else []
        while waiting:
            each = waiting.pop()
            waiting.extend(each.folders.values())
            if self._by_watch.get(each.watch) is each:
                del self._by_watch[each.watch]
                if self._inotify is not None:
                    self._inotify.remove(each.watch)
