"""What is in a folder: its entries with the hash of each content. Read without ever following a link.

A program inside a computer may change the folder meanwhile. Each file is therefore opened below an open folder, and
what is no longer what it was is left for the next time.
"""

import os
import stat
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from blake3 import blake3

from freehold.errors import FreeholdError

MAX_DEPTH = 100
"""Deeper folders are left out, and are among `skipped`."""
READ_SIZE = 1024 * 1024
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

EntryKind = Literal["folder", "file", "link"]
Signature = tuple[int, int, int, int]


class FolderEntry(NamedTuple):
    """One name. `content` is the hash of a file's bytes, or where a link leads."""

    path: str
    kind: EntryKind
    mode: int
    mtime: int
    size: int
    content: str

    def is_same(self, other: "FolderEntry | None") -> bool:
        """Whether nothing but the time of a folder differs, which changes with each name in it."""
        if other is None or self.kind != other.kind or self.mode != other.mode or self.content != other.content:
            return False
        return self.kind != "file" or self.mtime == other.mtime


@dataclass
class FolderState:
    """`signatures` are remembered so that the next look reads only what has changed. `skipped` is there and cannot be
    copied, and why."""

    entries: dict[str, FolderEntry] = field(default_factory=dict)
    signatures: dict[str, Signature] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        found = blake3()
        for entry in sorted(self.entries.values()):
            found.update(repr(tuple(entry)).encode("utf-8", "surrogateescape"))
        return found.hexdigest()


@dataclass(frozen=True)
class StateLimits:
    """More than this is refused: `fleet.too-big`."""

    entries: int
    size: int


def read_folder(root: Path, before: FolderState | None, limits: StateLimits) -> FolderState:
    """Everything below `root` now. Blocking."""
    state = FolderState()
    handle = os.open(root, _FOLDER)
    try:
        _FolderScan(state, before or FolderState(), limits).scan(handle, "", 0)
    finally:
        os.close(handle)
    return state


class _FolderScan:
    def __init__(self, state: FolderState, before: FolderState, limits: StateLimits) -> None:
        self._state = state
        self._before = before
        self._limits = limits
        self._size = 0

    def scan(self, folder: int, prefix: str, depth: int) -> None:
        with os.scandir(folder) as found:
            names = sorted(entry.name for entry in found)
        for name in names:
            path = prefix + name
            try:
                self._take(folder, name, path, depth)
            except OSError as error:  # gone, or changed its kind just now, or may not be read
                if not isinstance(error, FileNotFoundError):
                    self._state.skipped[path] = error.strerror or type(error).__name__

    def _take(self, folder: int, name: str, path: str, depth: int) -> None:
        found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        mode = stat.S_IMODE(found.st_mode) & 0o777
        if stat.S_ISDIR(found.st_mode):
            if depth >= MAX_DEPTH:
                self._state.skipped[path] = f"more than {MAX_DEPTH} folders deep"
                return
            self._add(FolderEntry(path, "folder", mode, 0, 0, ""))
            handle = os.open(name, _FOLDER, dir_fd=folder)
            try:
                self.scan(handle, f"{path}/", depth + 1)
            finally:
                os.close(handle)
        elif stat.S_ISLNK(found.st_mode):
            self._add(FolderEntry(path, "link", 0o777, 0, 0, os.readlink(name, dir_fd=folder)))
        elif stat.S_ISREG(found.st_mode):
            self._take_file(folder, name, path)
        else:
            self._state.skipped[path] = "neither a file nor a folder nor a link"

    def _take_file(self, folder: int, name: str, path: str) -> None:
        handle = os.open(name, _FILE, dir_fd=folder)
        try:
            found = os.fstat(handle)
            if not stat.S_ISREG(found.st_mode):
                return
            signature = (found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
            known = self._before.entries.get(path)
            if known is not None and self._before.signatures.get(path) == signature:
                content = known.content
            else:
                content = _hash_file(handle)
            self._state.signatures[path] = signature
            mode = stat.S_IMODE(found.st_mode) & 0o777
            self._add(FolderEntry(path, "file", mode, found.st_mtime_ns, found.st_size, content))
        finally:
            os.close(handle)

    def _add(self, entry: FolderEntry) -> None:
        self._size += entry.size
        if len(self._state.entries) >= self._limits.entries or self._size > self._limits.size:
            raise FreeholdError(
                "fleet.too-big",
                f"The folder has more than {self._limits.entries} names or {self._limits.size} bytes",
                hint="Raise computer.limits.disk or computer.limits.inodes",
            )
        self._state.entries[entry.path] = entry


def _hash_file(handle: int) -> str:
    found = blake3()
    while data := os.read(handle, READ_SIZE):
        found.update(data)
    return found.hexdigest()


def settle_base(
    base: Mapping[str, FolderEntry],
    entries: Mapping[str, FolderEntry],
    skipped: Collection[str],
    missing: Collection[str],
    kept: Collection[str] = (),
) -> dict[str, FolderEntry]:
    """What both sides have in common after `entries` were taken: all but contents that did not arrive, what is
    `skipped`, and names that were `kept` as they were in `base`."""
    found = {
        path: entry
        for path, entry in entries.items()
        if (entry.kind != "file" or entry.content not in missing) and not is_skipped(path, kept)
    }
    for path, entry in base.items():
        if path not in found and (path in entries or path in kept or is_skipped(path, skipped)):
            found[path] = entry
    return found


def is_skipped(path: str, skipped: Collection[str]) -> bool:
    """Whether it, or a folder above it, cannot be copied."""
    while skipped and path:
        if path in skipped:
            return True
        path = path.rpartition("/")[0]
    return False


class SentEntries:
    """Entries that another machine sends. Refuses names that lead elsewhere, and what has no folder above it."""

    def __init__(self, limits: StateLimits) -> None:
        self._limits = limits
        self._size = 0
        self.entries: dict[str, FolderEntry] = {}

    def add(self, rows: Iterable[object]) -> None:
        for row in rows:
            entry = _decode_entry(row)
            parent = entry.path.rpartition("/")[0]
            above = self.entries.get(parent)
            if entry.path in self.entries or (parent and (above is None or above.kind != "folder")):
                raise FreeholdError("fleet.bad-message", f"The name {entry.path[:200]!a} has no folder above it")
            self._size += entry.size
            self.entries[entry.path] = entry
        if self._size > self._limits.size:
            raise FreeholdError(
                "fleet.too-big", f"Files of {self._size} bytes were sent, and {self._limits.size} are allowed"
            )


def _decode_entry(row: object) -> FolderEntry:
    if not isinstance(row, list) or len(row) != 6:
        raise FreeholdError("fleet.bad-message", "An entry of a folder is not valid")
    path, kind, mode, mtime, size, content = row
    numbers = all(isinstance(value, int) and 0 <= value < 2**62 for value in (mode, mtime, size))
    words = isinstance(path, str) and isinstance(content, str)
    if not numbers or not words or kind not in ("folder", "file", "link") or mode > 0o777:
        raise FreeholdError("fleet.bad-message", "An entry of a folder is not valid")
    parts = path.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts) or len(parts) > MAX_DEPTH + 1:
        raise FreeholdError("fleet.bad-message", f"The name {path[:200]!a} leads out of the folder")
    if kind == "link" and (not content or "\0" in content):
        raise FreeholdError("fleet.bad-message", f"The link {path[:200]!a} leads nowhere")
    try:
        os.fsencode(path), os.fsencode(content)
    except UnicodeEncodeError:
        raise FreeholdError("fleet.bad-message", f"The name {path[:200]!a} cannot be a name") from None
    return FolderEntry(path, kind, mode, mtime, size, content)
