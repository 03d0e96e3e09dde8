"""Folders: list, walk, match, copy, remove. Links are listed and copied as links, and never followed.

The generators yield rows, or None where they may be interrupted; copy and remove yield False there.
"""

# pathlib is too slow to import here
# ruff: noqa: PTH101, PTH102, PTH108, PTH115, PTH116, PTH120, PTH211

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

PIECE = 4 * 1024 * 1024
PROC = os.stat("/proc").st_dev
"""The device of /proc. The guest sees more there than other processes may, so it is never read for them."""
MAX_PATTERN = 4096
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def describe_entry(name: bytes, found: os.stat_result, path: bytes | None = None) -> list[Any]:
    """Name, kind, size, mtime in ns, mode, and the target of a link."""
    mode = found.st_mode
    target = None
    if stat.S_ISREG(mode):
        kind = "file"
    elif stat.S_ISDIR(mode):
        kind = "folder"
    elif stat.S_ISLNK(mode):
        kind = "link"
        if path is not None:
            target = os.fsdecode(os.readlink(path))
    else:
        kind = "other"
    return [os.fsdecode(name), kind, found.st_size, found.st_mtime_ns, stat.S_IMODE(mode), target]


def list_folder(path: bytes, after: bytes, most: int) -> Generator[list[Any] | None, None, None]:
    """The entries whose names come after `after`, in the order of their bytes: `most` of them, or more."""
    while True:
        names, complete = yield from _first_names(path, after, most + 1)
        for name in names:
            where = path + b"/" + name
            try:
                yield describe_entry(name, os.lstat(where), where)
            except FileNotFoundError:
                continue  # it was removed meanwhile
        if complete:
            return
        after = names[-1]


def _first_names(path: bytes, after: bytes, most: int) -> Generator[None, None, tuple[list[bytes], bool]]:
    """The first `most` names after a name, and whether these are all. Sorts a part at a time: other requests wait."""
    names: list[bytes] = []
    complete = True
    with os.scandir(path) as entries:
        for count, entry in enumerate(entries):
            if entry.name > after:
                names.append(entry.name)
            if len(names) >= 4 * most:
                names.sort()
                del names[most:]
                complete = False
            if count % 1024 == 0:
                yield None
    names.sort()
    return names[:most], complete and len(names) <= most


def walk_folder(path: bytes, depth: int, skip: list[bytes]) -> Generator[list[Any] | None, None, None]:
    """Entries with names relative to the path, a folder before its contents. Unreadable folders are skipped."""
    skipped = set(skip)
    stack = [(path, b"", 1)]
    while stack:
        folder, prefix, level = stack.pop()
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            if not prefix:
                raise
            continue
        below = []
        for entry in entries:
            if entry.name in skipped:
                continue
            try:
                yield describe_entry(prefix + entry.name, entry.stat(follow_symlinks=False), entry.path)
            except OSError:
                continue
            if level < depth and entry.is_dir(follow_symlinks=False):
                below.append((entry.path, prefix + entry.name + b"/", level + 1))
        stack += reversed(below)
        yield None


def match_glob(path: bytes, pattern: bytes) -> Generator[list[Any] | None, None, None]:
    """`*`, `?`, `[...]` within a name, `**` for any number of folders. A name that starts with a dot needs a dot."""
    import fnmatch
    import re

    if len(pattern) > MAX_PATTERN:
        raise OSError(22, f"A pattern may have {MAX_PATTERN} bytes, this one has {len(pattern)}")
    segments: list[Any] = []
    for segment in pattern.split(b"/"):
        if segment == b"**":
            if not segments or segments[-1] is not None:
                segments.append(None)
        elif segment:
            segments.append((re.compile(fnmatch.translate(os.fsdecode(segment))).match, segment.startswith(b".")))
    stack: list[tuple[bytes, bytes, int]] = [(path, b"", 0)]
    seen: set[bytes] = set()
    while stack and segments:
        folder, prefix, at = stack.pop()
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            continue
        yield None
        deep = segments[at] is None
        follow = at + 1 if deep else at
        for entry in entries:
            name, hidden = prefix + entry.name, entry.name.startswith(b".")
            is_folder = entry.is_dir(follow_symlinks=False)
            if deep and is_folder and not hidden:
                stack.append((entry.path, name + b"/", at))
            if follow == len(segments):
                matched = deep and not hidden
            else:
                match, dotted = segments[follow]
                matched = match(os.fsdecode(entry.name)) is not None and hidden == dotted
            if not matched:
                continue
            if follow >= len(segments) - 1:
                if name not in seen:
                    seen.add(name)
                    try:
                        yield describe_entry(name, entry.stat(follow_symlinks=False), entry.path)
                    except OSError:
                        continue
            elif is_folder:
                stack.append((entry.path, name + b"/", follow + 1))


def copy_tree(source: bytes, target: bytes) -> Generator[bool, None, None]:
    """Copy a file, a link or a folder, with contents, modes and times."""
    found = os.lstat(source)
    if stat.S_ISDIR(found.st_mode) and _is_below(target, found):
        raise OSError(22, "A folder cannot be copied into itself", target)
    yield from _copy_entry(source, target, found)


def _is_below(path: bytes, folder: os.stat_result) -> bool:
    """By the folders themselves: the same one has many spellings."""
    above = os.path.realpath(os.path.dirname(path))
    while not os.path.samestat(os.stat(above), folder):
        if above == b"/":
            return False
        above = os.path.dirname(above)
    return True


def _copy_entry(source: bytes, target: bytes, found: os.stat_result) -> Generator[bool, None, None]:
    if stat.S_ISLNK(found.st_mode):
        os.symlink(os.readlink(source), target)
    elif stat.S_ISDIR(found.st_mode):
        os.mkdir(target, 0o700)
        with os.scandir(source) as entries:
            for entry in entries:
                yield from _copy_entry(entry.path, target + b"/" + entry.name, entry.stat(follow_symlinks=False))
        os.chmod(target, stat.S_IMODE(found.st_mode))
        os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
    elif stat.S_ISREG(found.st_mode):
        yield from _copy_file(source, target)
    else:
        raise PermissionError(1, "Not a regular file", source)
    yield False


def _copy_file(source: bytes, target: bytes) -> Generator[bool, None, None]:
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        found = os.fstat(reading)
        if found.st_dev == PROC:
            raise PermissionError(1, "Not a regular file", source)
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            while os.sendfile(writing, reading, None, PIECE):
                yield False
            os.fchmod(writing, stat.S_IMODE(found.st_mode))
            os.utime(writing, ns=(found.st_atime_ns, found.st_mtime_ns))
        except BaseException:
            unlink_quietly(target)
            raise
        finally:
            os.close(writing)
    finally:
        os.close(reading)


def remove_tree(path: bytes) -> Generator[bool, None, None]:
    """Remove a file or a folder. Uses folder handles, so that a folder that is replaced by a link is not followed."""
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        os.unlink(path)
        return
    stack: list[tuple[bytes, int, list[tuple[bytes, bool]]]] = []
    try:
        stack.append((path, *_open_folder(path, None)))
        while stack:
            name, handle, left = stack[-1]
            if left:
                below, is_folder = left.pop()
                if is_folder:
                    stack.append((below, *_open_folder(below, handle)))
                else:
                    os.unlink(below, dir_fd=handle)
            else:
                stack.pop()
                os.close(handle)
                os.rmdir(name, dir_fd=stack[-1][1] if stack else None)
            yield False
    finally:
        for _, handle, _ in stack:
            os.close(handle)


def _open_folder(name: bytes, above: int | None) -> tuple[int, list[tuple[bytes, bool]]]:
    """A handle of the folder, and its entries: names, and whether they are folders."""
    try:
        handle = os.open(name, FOLDER, dir_fd=above)
    except PermissionError:
        os.chmod(name, 0o700, dir_fd=above)
        handle = os.open(name, FOLDER, dir_fd=above)
    try:
        with os.scandir(handle) as entries:
            return handle, [(os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)) for entry in entries]
    except BaseException:
        os.close(handle)
        raise


def unlink_quietly(path: bytes) -> None:
    try:
        os.unlink(path)
    except OSError:
        return
