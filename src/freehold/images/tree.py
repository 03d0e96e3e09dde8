"""The list of everything in a root folder: what it must be, and a check that it still is."""

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.images.pool import hash_file

_KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}


@dataclass(frozen=True)
class TreeEntry:
    """`content` is the hash of a file or the target of a link. `path` is relative to the root."""

    kind: str
    mode: int
    size: int
    mtime: int
    content: str
    path: str

    def line(self) -> str:
        return f"{self.kind} {self.mode:04o} {self.size} {self.mtime} {self.content or '-'} {self.path}"


def list_tree(root: Path) -> Iterator[TreeEntry]:
    """Every entry with the hash of its content, sorted by path."""
    for path, found in _walk(root):
        yield _describe(root, path, found, with_content=True)


def write_tree_list(root: Path, target: Path) -> str:
    """Write the list, and return its hash."""
    text = "".join(f"{entry.line()}\n" for entry in list_tree(root)).encode(errors="surrogateescape")
    target.write_bytes(text)
    return hashlib.sha256(text).hexdigest()


def check_tree(root: Path, tree_list: Path, *, thorough: bool) -> None:
    """Raise `image.tampered` for the first difference from the list.

    Not `thorough` compares kinds, modes, sizes, times and links, which takes a tenth of a second; a file that is
    written gets another time. `thorough` reads and hashes every file too.
    """
    # Not splitlines(): a name may have any of the other characters that this takes for the end of a line.
    lines = tree_list.read_bytes().decode(errors="surrogateescape").split("\n")[:-1]
    if any(line.count(" ") < 5 for line in lines):
        raise _tampered(root, f"{tree_list.name} cannot be read")
    expected = {line.split(" ", 5)[5]: line for line in lines}
    for path, found in _walk(root):
        entry = _describe(root, path, found, with_content=thorough)
        wanted = expected.pop(entry.path, None)
        if wanted is None:
            raise _tampered(root, f"{entry.path} is not a part of it")
        parts, wants = entry.line().split(" ", 5), wanted.split(" ", 5)
        if not thorough and entry.kind == "file":
            parts[4] = wants[4]
        if parts != wants:
            raise _tampered(root, f"{entry.path} was changed")
    if expected:
        raise _tampered(root, f"{min(expected)} is missing")


def _walk(root: Path) -> Iterator[tuple[Path, os.stat_result]]:
    with os.scandir(root) as scan:
        entries = sorted(scan, key=lambda entry: os.fsencode(entry.name))
    for entry in entries:
        found = entry.stat(follow_symlinks=False)
        yield Path(entry.path), found
        if stat.S_ISDIR(found.st_mode):
            yield from _walk(Path(entry.path))


def _describe(root: Path, path: Path, found: os.stat_result, *, with_content: bool) -> TreeEntry:
    kind = _KINDS.get(stat.S_IFMT(found.st_mode))
    name = str(path.relative_to(root))
    if kind is None or "\n" in name:
        raise _tampered(root, f"{name!r} is no file, folder or link")
    mode, size, content = stat.S_IMODE(found.st_mode), 0, ""
    if kind == "file":
        size = found.st_size
        content = hash_file(path) if with_content else ""
    elif kind == "link":
        mode, content = 0o777, _quote(os.readlink(path))  # noqa: PTH115 - a Path would change it
    return TreeEntry(kind, mode, size, int(found.st_mtime), content, name)


def _quote(target: str) -> str:
    """Without spaces and ends of lines. Other targets never give the same text."""
    return target.replace("%", "%25").replace(" ", "%20").replace("\n", "%0A")


def _tampered(root: Path, what: str) -> FreeholdError:
    return FreeholdError(
        "image.tampered", f"The image in {root} is not what was built: {what}", hint="Build it again: freehold build"
    )
