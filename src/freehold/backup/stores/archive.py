"""A repository in one tar file, as `freehold export` writes it. Unpacked, it is a repository in a folder."""

import io
import os
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import IO

from freehold.backup.stores.contract import (
    MAX_OBJECT,
    ObjectExists,
    ObjectMissing,
    StoredObject,
    check_object_name,
    is_object_name,
    store_full,
    store_refused,
)
from freehold.backup.stores.tar_members import BadArchive, read_members
from freehold.errors import FreeholdError


class ArchiveStore:
    """Objects are only ever added. An archive that is read is never changed."""

    def __init__(self, path: Path, *, write: bool = False) -> None:
        self.where = str(path)
        self._lock = threading.Lock()
        self._members: dict[str, tuple[int, int, float]] = {}
        """Name → offset, size, time."""
        self._file: IO[bytes]
        try:
            if write:
                handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
                self._file = os.fdopen(handle, "w+b")
                self._tar: tarfile.TarFile | None = tarfile.TarFile(
                    fileobj=self._file, mode="w", format=tarfile.USTAR_FORMAT
                )
            else:
                self._file = path.open("rb")
                self._tar = None
                self._read_members()
        except FileExistsError:
            raise FreeholdError("backup.exists", f"{path} exists already", hint="Choose another name") from None
        except OSError as error:
            raise _cannot_use(self.where, error.strerror) from error

    def _read_members(self) -> None:
        try:
            for member in read_members(self._file.fileno()):
                if is_object_name(member.name):
                    self._members[member.name] = (member.offset, member.size, member.modified)
        except BadArchive as error:
            self._file.close()
            raise _not_ours(self.where, str(error)) from error

    def put(self, name: str, data: bytes) -> None:
        check_object_name(name)
        if self._tar is None:
            raise store_refused(self.where, "an archive is never changed")
        with self._lock:
            member = tarfile.TarInfo(name)
            member.size, member.mode, member.mtime = len(data), 0o600, int(time.time())
            try:
                self._tar.addfile(member, io.BytesIO(data))
                self._file.flush()
            except OSError as error:
                raise store_full(self.where, error.strerror) from error
            padded = -(-len(data) // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
            self._members[name] = (self._tar.offset - padded, len(data), member.mtime)

    def create(self, name: str, data: bytes) -> None:
        if name in self._members:
            raise ObjectExists(name)
        self.put(name, data)

    def get(self, name: str) -> bytes:
        if name not in self._members:
            raise ObjectMissing(name)
        offset, size, _ = self._members[name]
        try:
            return os.pread(self._file.fileno(), min(size, MAX_OBJECT + 1), offset)
        except OSError as error:
            raise _cannot_use(self.where, error.strerror) from error

    def list_objects(self, folder: str) -> Iterator[StoredObject]:
        for name, (_, size, modified) in [*self._members.items()]:
            if name.startswith(folder):
                yield StoredObject(name, size, modified)

    def delete(self, name: str) -> None:
        """The bytes stay in the file, and an older object of this name may be read from it again."""
        self._members.pop(name, None)

    def read_clock(self) -> float:
        return time.time()

    def close(self) -> None:
        if self._file.closed:
            return
        try:
            if self._tar is not None:
                self._tar.close()
                self._file.flush()
                os.fsync(self._file.fileno())
        except OSError as error:
            raise store_full(self.where, error.strerror) from error
        finally:
            with suppress(OSError):  # what could not be written was told above
                self._file.close()


def _cannot_use(where: str, why: object) -> FreeholdError:
    return FreeholdError(
        "backup.refused", f"The file {where} cannot be used: {why}", hint="Check the path and the disk"
    )


def _not_ours(where: str, why: str) -> FreeholdError:
    return FreeholdError(
        "backup.refused",
        f"The file {where} is not what freehold export writes: {why}",
        hint="Copy it again from where it was written",
    )
