"""Opens tar and zip archives of strangers: what an archive says of itself is bounded before it is believed.

A few megabytes can unpack to a list of files, or to the head of one file, that fills the memory of this machine.
"""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, cast

from freehold.errors import FreeholdError

MAX_TAR_LIST = 16 * 1024 * 1024
"""Bytes of all heads of a tar archive."""
MAX_ZIP_LIST = 8 * 1024 * 1024
MAX_HEAD = 64 * 1024
"""Bytes of one extended head of a tar archive: a long name, or attributes of a file."""
MAX_GLOBAL = 4 * 1024
"""Bytes of what a tar archive says of all its files: it is kept for each of them."""
BROKEN = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError),
    *(EOFError, KeyError, ValueError, RuntimeError, OSError),
)
"""What the libraries raise for an archive that cannot be read."""
_HOLES = b"GNU.sparse."
"""How the extended head of a file with holes begins. The list of its parts has no bound of its own."""
_EXTENDED = frozenset(
    {tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK}
)


class ListReader(io.RawIOBase):
    """A file of which at most `most` bytes are read before `lift` is called. Raises `skill.too-big`."""

    def __init__(self, file: IO[bytes], most: int) -> None:
        self._file = file
        self._left: int | None = most

    def lift(self) -> None:
        """The list is known: from now on files are read, which have bounds of their own."""
        self._left = None

    def read(self, size: int | None = -1, /) -> bytes:
        wanted = -1 if size is None else size
        if self._left is None:
            return self._file.read(wanted)
        data = self._file.read(self._left + 1 if wanted < 0 else min(wanted, self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            raise _too_long()
        if _HOLES in data:
            raise _refuse_holes()
        return data

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        return self._file.tell()

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True


@contextmanager
def open_tar(path: Path) -> Iterator[tuple[tarfile.TarFile, ListReader]]:
    """A tar archive, packed by gzip, bzip2, xz or not at all. `lift` the reader when all members were seen."""
    left = MAX_GLOBAL

    class Head(tarfile.TarInfo):
        @classmethod
        def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> "Head":
            nonlocal left
            head = super().frombuf(buf, encoding, errors)
            if head.type in _EXTENDED and head.size > MAX_HEAD:
                raise _too_long()
            if head.type == tarfile.XGLTYPE:
                left -= head.size
                if left < 0:
                    raise _too_long()
            if head.type == tarfile.GNUTYPE_SPARSE:
                raise _refuse_holes()
            return head

    with path.open("rb") as file:
        start = file.read(6)
        file.seek(0)
        with _unpack(start, file) as plain:
            reader = ListReader(plain, MAX_TAR_LIST)
            with tarfile.open(fileobj=cast("IO[bytes]", reader), mode="r:", tarinfo=Head) as tar:
                yield tar, reader


@contextmanager
def open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    with path.open("rb") as file:
        reader = ListReader(file, MAX_ZIP_LIST)
        with zipfile.ZipFile(cast("IO[bytes]", reader)) as packed:
            reader.lift()
            yield packed


def _unpack(start: bytes, file: IO[bytes]) -> IO[bytes]:
    if start.startswith(b"\x1f\x8b"):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=file))
    if start.startswith(b"BZh"):
        return cast("IO[bytes]", bz2.BZ2File(file))
    if start.startswith((b"\xfd7zXZ\0", b"\x5d\0\0")):
        return cast("IO[bytes]", lzma.LZMAFile(file))
    return file


def _refuse_holes() -> FreeholdError:
    return FreeholdError("skill.refused", "A file with holes is in it", hint="Pack it again without --sparse")


def _too_long() -> FreeholdError:
    return FreeholdError("skill.too-big", "The list of its files is too long", hint="Pack the skill by itself")
