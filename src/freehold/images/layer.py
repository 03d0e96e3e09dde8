"""Layers: tars in which nothing tells when, where and by whom they were made."""

import io
import os
import stat
import tarfile
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from freehold.errors import FreeholdError


class LayerWriter:
    """Writes one layer. Every entry belongs to root and has the time of the lock; folders above an entry are added."""

    def __init__(self, tar: tarfile.TarFile, epoch: int) -> None:
        self._tar = tar
        self._epoch = epoch
        self._folders: set[PurePosixPath] = {PurePosixPath()}

    def add_file(self, place: str, content: bytes, mode: int = 0o644) -> None:
        self._add(place, tarfile.REGTYPE, mode, content=content)

    def add_link(self, place: str, target: str) -> None:
        self._add(place, tarfile.SYMTYPE, 0o777, link=target)

    def add_folder(self, place: str, mode: int = 0o755, owner: int = 0) -> None:
        path = _inside(place)
        self._make_parents(path)
        if path not in self._folders:
            self._folders.add(path)
            self._tar.addfile(self._head(path, tarfile.DIRTYPE, mode, owner))

    def add_tree(self, place: str, source: Path, skip: Container[str] = ()) -> None:
        """A file or folder of this machine. Links stay links; sockets and devices are refused, names in `skip` left out."""
        found = source.lstat()
        if stat.S_ISLNK(found.st_mode):
            self.add_link(place, str(source.readlink()))
        elif stat.S_ISDIR(found.st_mode):
            self.add_folder(place)
            for entry in sorted(source.iterdir(), key=lambda each: os.fsencode(each.name)):
                if entry.name not in skip:
                    self.add_tree(f"{place}/{entry.name}", entry, skip)
        elif stat.S_ISREG(found.st_mode):
            self.add_file(place, source.read_bytes(), 0o755 if found.st_mode & 0o100 else 0o644)
        else:
            raise FreeholdError(
                "image.bad-file", f"{source} is neither a file nor a folder", hint="Remove it from image.files"
            )

    def _add(self, place: str, kind: bytes, mode: int, *, content: bytes = b"", link: str = "") -> None:
        path = _inside(place)
        self._make_parents(path)
        head = self._head(path, kind, mode, 0)
        head.size, head.linkname = len(content), link
        self._tar.addfile(head, io.BytesIO(content) if kind == tarfile.REGTYPE else None)

    def _make_parents(self, path: PurePosixPath) -> None:
        for parent in reversed(path.parents):
            if parent not in self._folders:
                self._folders.add(parent)
                self._tar.addfile(self._head(parent, tarfile.DIRTYPE, 0o755, 0))

    def _head(self, path: PurePosixPath, kind: bytes, mode: int, owner: int) -> tarfile.TarInfo:
        head = tarfile.TarInfo(f"./{path}")
        head.type, head.mode, head.mtime = kind, mode, self._epoch
        head.uid = head.gid = owner
        return head


def _inside(place: str) -> PurePosixPath:
    """The path below the root. Raises `image.bad-path` for one that would leave it: archives come from outside."""
    path = PurePosixPath(place)
    parts = [part for part in path.parts if part != "/"]
    if not parts or ".." in parts or "\0" in place:
        raise FreeholdError("image.bad-path", f"{place!r} is not a path inside the image")
    return PurePosixPath(*parts)


@contextmanager
def write_layer(target: Path, epoch: int) -> Iterator[LayerWriter]:
    with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as tar:
        yield LayerWriter(tar, epoch)
