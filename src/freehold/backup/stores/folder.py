"""A repository in a folder: another disk, a USB stick, a network share."""

import errno
import os
import secrets
import time
from collections.abc import Iterator
from pathlib import Path

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
from freehold.errors import FreeholdError

_DRAFT = ".draft-"
_OLD_DRAFT = 86_400.0


class FolderStore:
    def __init__(self, folder: Path, *, create: bool = True) -> None:
        self.where = str(folder)
        self._folder = folder
        try:
            if create:
                folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            elif not folder.is_dir():
                raise store_refused(self.where, "there is no such folder")
        except OSError as error:
            raise self._explain(error) from error

    def put(self, name: str, data: bytes) -> None:
        self._write(name, data, replace=True)

    def create(self, name: str, data: bytes) -> None:
        self._write(name, data, replace=False)

    def get(self, name: str) -> bytes:
        try:
            with open(self._path(name), "rb", opener=_no_follow) as file:
                return file.read(MAX_OBJECT + 1)
        except FileNotFoundError:
            raise ObjectMissing(name) from None
        except OSError as error:
            raise self._explain(error) from error

    def list_objects(self, folder: str) -> Iterator[StoredObject]:
        top = self._folder / folder
        for place, _, files in os.walk(top):
            for file in files:
                path = Path(place, file)
                name = str(path.relative_to(self._folder))
                try:
                    found = path.lstat()
                except FileNotFoundError:
                    continue
                if file.startswith(_DRAFT):
                    if time.time() - found.st_mtime > _OLD_DRAFT:
                        path.unlink(missing_ok=True)
                elif is_object_name(name):
                    yield StoredObject(name, found.st_size, found.st_mtime)

    def delete(self, name: str) -> None:
        try:
            self._path(name).unlink(missing_ok=True)
        except OSError as error:
            raise self._explain(error) from error

    def read_clock(self) -> float:
        """A network share has the times of its server."""
        draft = self._folder / f"{_DRAFT}{secrets.token_hex(8)}"
        try:
            draft.touch(0o600)
            try:
                return draft.stat().st_mtime
            finally:
                draft.unlink()
        except OSError as error:
            raise self._explain(error) from error

    def close(self) -> None:
        return None

    def _path(self, name: str) -> Path:
        return self._folder / check_object_name(name)

    def _write(self, name: str, data: bytes, *, replace: bool) -> None:
        path = self._path(name)
        draft = path.with_name(f"{_DRAFT}{secrets.token_hex(8)}")
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            try:
                self._write_draft(draft, data)
                if replace:
                    draft.replace(path)
                else:
                    self._link(draft, path)
            finally:
                draft.unlink(missing_ok=True)
            _sync_folder(path.parent)
        except FileExistsError:
            raise ObjectExists(name) from None
        except OSError as error:
            raise self._explain(error) from error

    def _write_draft(self, draft: Path, data: bytes) -> None:
        handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())

    def _link(self, draft: Path, path: Path) -> None:
        try:
            os.link(draft, path)
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS):
                raise
            # FAT and exFAT have no links: reserve the name, then replace what reserves it.
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
            draft.replace(path)

    def _explain(self, error: OSError) -> FreeholdError:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return store_full(self.where, error.strerror)
        if error.errno == errno.EROFS:
            return FreeholdError(
                "backup.refused",
                f"The backup store {self.where} cannot be written: {error.strerror}",
                hint="Look at the disk. A service of systemd may write there when its unit is printed again: freehold deploy systemd",
            )
        return store_refused(self.where, error.strerror)


def _no_follow(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
