"""The pool: the files that a lock names, each stored under its hash. Nothing in it is trusted before it is hashed again."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from freehold.errors import FreeholdError
from freehold.images.lock import ImageLock, LockedPackage

CHUNK = 1 << 20


def hash_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True)
class PackagePool:
    """A folder of files by their SHA-256."""

    folder: Path

    def add(self, file: Path) -> tuple[str, int]:
        """Copy a file into the pool. Returns its hash and size. Idempotent, and complete or not at all.

        A file that was changed in the pool is replaced.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        digest = hash_file(file)
        place = self.folder / digest
        if not place.is_file() or hash_file(place) != digest:
            descriptor, draft = tempfile.mkstemp(prefix=".new-", dir=self.folder)
            with os.fdopen(descriptor, "wb") as target, file.open("rb") as source:
                shutil.copyfileobj(source, target, CHUNK)
            Path(draft).chmod(0o644)
            Path(draft).replace(place)
        return digest, place.stat().st_size

    def open_checked(self, package: LockedPackage) -> Path:
        """The path of a package whose content is what the lock says. Raises `image.missing` or `image.tampered`."""
        place = self.folder / package.sha256
        if not place.is_file():
            raise FreeholdError(
                "image.missing",
                f"{package.name} {package.version} is not in the pool",
                hint="freehold build lock chooses and fetches the packages again",
            )
        found = hash_file(place)
        if found != package.sha256:
            raise FreeholdError(
                "image.tampered",
                f"{package.name} {package.version} in the pool has the hash {found[:12]}…, and the lock says {package.sha256[:12]}…",
                hint="freehold build lock chooses and fetches the packages again",
            )
        return place

    def remove_unused(self, locks: Iterable[ImageLock]) -> int:
        """Remove the files that none of the locks names. Returns the bytes that are free now."""
        used = {package.sha256 for lock in locks for package in lock.packages}
        freed = 0
        if self.folder.is_dir():
            for path in self.folder.iterdir():
                if path.name not in used:
                    freed += path.stat().st_size
                    path.unlink()
        return freed
