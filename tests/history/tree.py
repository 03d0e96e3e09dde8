"""Reads a tree as plain values, to compare two states: type, mode, time, bytes, link target, hard links."""

import os
import stat
from pathlib import Path
from typing import NamedTuple


class TreeItem(NamedTuple):
    kind: int
    mode: int
    mtime: int
    data: bytes
    names: tuple[bytes, ...]
    """All names of the file, when it has several."""


def read_tree(root: Path) -> dict[bytes, TreeItem]:
    """Everything at and below `root`; the root itself has the empty name."""
    stats: dict[Path, os.stat_result] = {root: root.lstat()}
    waiting = [root]
    while waiting:
        for path in waiting.pop().iterdir():
            stats[path] = path.lstat()
            if stat.S_ISDIR(stats[path].st_mode):
                waiting.append(path)
    by_inode: dict[int, list[bytes]] = {}
    for path, found in stats.items():
        if stat.S_ISREG(found.st_mode):
            by_inode.setdefault(found.st_ino, []).append(_below(root, path))
    tree: dict[bytes, TreeItem] = {}
    for path, found in stats.items():
        data = b""
        names: tuple[bytes, ...] = ()
        if stat.S_ISREG(found.st_mode):
            data = path.read_bytes()
            same = by_inode[found.st_ino]
            names = tuple(sorted(same)) if len(same) > 1 else ()
        elif stat.S_ISLNK(found.st_mode):
            data = os.fsencode(path.readlink())
        tree[_below(root, path)] = TreeItem(
            stat.S_IFMT(found.st_mode), stat.S_IMODE(found.st_mode), found.st_mtime_ns, data, names
        )
    return tree


def _below(root: Path, path: Path) -> bytes:
    return b"" if path == root else os.fsencode(path.relative_to(root))


def differences(
    one: dict[bytes, TreeItem], other: dict[bytes, TreeItem]
) -> dict[bytes, tuple[TreeItem | None, TreeItem | None]]:
    return {
        path: (one.get(path), other.get(path)) for path in one.keys() | other.keys() if one.get(path) != other.get(path)
    }


def write(path: Path, data: bytes | str, mode: int | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    if mode is not None:
        path.chmod(mode)
    return path
