"""The files of a home that history does not record: the vault, the databases, the manifest, and agents' own state.

What is below the computer's folders is written by agents. It is read through folder handles, and no link is followed.
"""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from freehold.history.ignore_rules import compile_ignore_rules
from freehold.home import Home
from freehold.keeper.agent_state import (
    IGNORED_PATTERNS,
    STATE_FILES,
    STATE_FOLDERS,
    list_memory_folders,
    list_memory_patterns,
)
from freehold.manifest import load_manifest

LEFT_OUT = frozenset(
    ["agents", "backup", "computers", "copies", "history", "images", "keeper.lock", "kept-homes", "logs", "mounts", "versions"]
)  # fmt: skip
"""What is made again, or is of no use on another machine. The history has a form of its own; see `history_tables`."""
TRACKED = ("workspace", "home", "pods")
MAX_DEPTH = 100
MAX_STORED_PATH = 4000
"""A longer one could not be written by a restore."""
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_SIDE_FILES = ("-wal", "-shm", "-journal")


@dataclass(frozen=True)
class FoundFile:
    """`open` gives a new handle of a regular file, which is the file of `stat` or has just replaced it."""

    path: bytes
    stat: os.stat_result
    target: bytes = b""
    open: Callable[[], int] = lambda: -1


class HomeFiles:
    """Walks the home. `notes` says what was left out because it could not be read."""

    def __init__(self, home: Home, recorded: tuple[str, ...]) -> None:
        """`recorded` are the folders that history records."""
        self._home = home
        self._recorded = recorded
        manifest = load_manifest(home.manifest, {}, home=home.root).manifest
        self._state = (*STATE_FOLDERS, *list_memory_folders(manifest))
        self._ignored = compile_ignore_rules((*IGNORED_PATTERNS, *list_memory_patterns(manifest)))
        self.notes: list[str] = []

    def walk(self) -> Iterator[FoundFile]:
        """Folders before what is in them."""
        root = os.open(self._home.root, _FOLDER_FLAGS)
        try:
            for name in sorted(_list_names(root)):
                if name in LEFT_OUT or name in self._recorded or name.startswith("."):
                    continue
                yield from self._visit(root, os.fsencode(name), b"", 0)
            yield from self._below(root, "history", ("set-aside",))
            if "home" in self._recorded:
                yield from self._walk_agent_state(root)
        finally:
            os.close(root)

    def open_recorded(self, path: bytes) -> FoundFile | None:
        """A file that history lists and could not store. None when it is no regular file any more."""
        if self._is_too_long(path):
            return None
        try:
            handle = self._open_path(path)
            try:
                found = os.fstat(handle)
            finally:
                os.close(handle)
        except OSError as error:
            self._note(path, error)
            return None
        return FoundFile(path, found, open=lambda: self._open_path(path)) if stat.S_ISREG(found.st_mode) else None

    def _open_path(self, path: bytes) -> int:
        handle = os.open(self._home.root, _FOLDER_FLAGS)
        try:
            *folders, name = path.split(b"/")
            for folder in folders:
                deeper = os.open(folder, _FOLDER_FLAGS, dir_fd=handle)
                os.close(handle)
                handle = deeper
            return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=handle)
        finally:
            os.close(handle)

    def _below(self, root: int, top: str, names: tuple[str, ...]) -> Iterator[FoundFile]:
        try:
            folder = os.open(top, _FOLDER_FLAGS, dir_fd=root)
        except OSError:
            return
        try:
            for name in names:
                if name in _list_names(folder):
                    yield from self._visit(folder, name.encode(), top.encode(), 1)
        finally:
            os.close(folder)

    def _walk_agent_state(self, root: int) -> Iterator[FoundFile]:
        for place in self._state:
            parts = ("home", *place.split("/"))
            handles = [root]
            try:
                for part in parts[:-1]:
                    handles.append(os.open(part, _FOLDER_FLAGS, dir_fd=handles[-1]))
                yield from self._visit(
                    handles[-1], os.fsencode(parts[-1]), os.fsencode("/".join(parts[:-1])), len(parts), self._is_ignored
                )
            except OSError:
                continue  # no agent has written there
            finally:
                for handle in handles[1:]:
                    os.close(handle)
        try:
            home = os.open("home", _FOLDER_FLAGS, dir_fd=root)
        except OSError:
            return
        try:
            for name in sorted(_list_names(home)):
                if name.startswith(STATE_FILES):
                    yield from self._visit(home, os.fsencode(name), b"home", 1)
        finally:
            os.close(home)

    def _is_ignored(self, path: bytes, mode: int) -> bool:
        return self._ignored is not None and self._ignored(tuple(path.split(b"/")), mode)

    def _visit(
        self,
        parent: int,
        name: bytes,
        above: bytes,
        depth: int,
        wanted: Callable[[bytes, int], bool] | None = None,
    ) -> Iterator[FoundFile]:
        """This entry and everything below. With `wanted`, only what it accepts, and all below that."""
        path = above + b"/" + name if above else name
        if self._is_too_long(path):
            return
        try:
            found = os.stat(name, dir_fd=parent, follow_symlinks=False)
            taken = wanted is None or wanted(path, found.st_mode)
            if stat.S_ISDIR(found.st_mode):
                if depth >= MAX_DEPTH:
                    self.notes.append(f"{_show(path)} is more than {MAX_DEPTH} folders deep")
                    return
                handle = os.open(name, _FOLDER_FLAGS, dir_fd=parent)
                try:
                    if taken:
                        yield FoundFile(path, found)
                    for inner in sorted(_list_names(handle)):
                        yield from self._visit(handle, os.fsencode(inner), path, depth + 1, None if taken else wanted)
                finally:
                    os.close(handle)
            elif taken and stat.S_ISLNK(found.st_mode):
                yield FoundFile(path, found, target=os.readlink(name, dir_fd=parent))
            elif taken and stat.S_ISREG(found.st_mode) and not name.decode("latin-1").endswith(_SIDE_FILES):
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                yield FoundFile(path, found, open=lambda: os.open(name, flags, dir_fd=parent))
        except OSError as error:
            self._note(path, error)

    def _is_too_long(self, path: bytes) -> bool:
        if len(path) > MAX_STORED_PATH:
            self.notes.append(f"{_show(path)} is longer than {MAX_STORED_PATH:,} bytes")
        return len(path) > MAX_STORED_PATH

    def _note(self, path: bytes, error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):  # it was removed meanwhile
            self.notes.append(f"{_show(path)}: {error.strerror}")


def _show(path: bytes) -> str:
    """For a terminal and a page: agents choose these names."""
    text = path[:200].decode("utf-8", "backslashreplace")
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def _list_names(handle: int) -> list[str]:
    return os.listdir(handle)


def list_installed_agents(home: Home) -> tuple[str, ...]:
    """They are not in a backup: their locks are in Freehold, and `freehold agents add` brings them again."""
    return tuple(sorted(path.parent.name for path in home.agents.glob("[!.]*/freehold.json")))


def describe_owner(folder: Path) -> tuple[int, int, int] | None:
    """The owner, group and mode of a folder; None when there is none."""
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return None
    return found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)
