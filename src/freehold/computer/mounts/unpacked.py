"""A cache of folders that were made once and are only read since."""

import contextlib
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path

from freehold.errors import FreeholdError

MAX_BYTES = 20 * 1024**3
MAX_FILES = 1_000_000
MAX_LINK = 4095
"""Bytes of the target of a link: the kernel takes no more."""
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class FolderWriter:
    """Writes files below `root`, and nothing anywhere else. Raises `computer.mount-refused` for a name that leads out, or too much."""

    def __init__(self, root: Path, source: str) -> None:
        self._root = root
        self._source = source
        self._bytes = 0
        self._files = 0

    def place(self, name: str) -> Path:
        """Where an entry goes. Its folder exists then, and no part of it is a link."""
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if name.startswith("/") or ".." in parts or "\0" in name:
            raise self.refuse(f"{name[:200]!r} leads out of it")
        self._files += 1
        if self._files > MAX_FILES:
            raise self.refuse(f"it has more than {MAX_FILES} entries")
        folder = self._root
        for part in parts[:-1]:
            folder = folder / part
            if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
                raise self.refuse(f"{name[:200]!r} goes through something that is no folder")
            folder.mkdir(exist_ok=True)
        return folder / parts[-1] if parts else self._root

    def add_folder(self, name: str) -> None:
        place = self.place(name)
        if place.is_symlink() or (place.exists() and not place.is_dir()):
            raise self.refuse(f"{name[:200]!r} is there twice")
        place.mkdir(exist_ok=True)

    def add_file(self, name: str, read: Callable[[int], bytes], executable: bool) -> None:
        place = self.place(name)
        with contextlib.suppress(IsADirectoryError):
            place.unlink(missing_ok=True)  # the last entry of a name counts, as for other programs
        descriptor = os.open(place, _FLAGS, 0o755 if executable else 0o644)
        with os.fdopen(descriptor, "wb") as file:
            while data := read(1 << 20):
                self._bytes += len(data)
                if self._bytes > MAX_BYTES:
                    raise self.refuse(f"it is larger than {MAX_BYTES // 1024**3} GiB")
                file.write(data)

    def add_link(self, name: str, target: str) -> None:
        """A symbolic link, as text: nobody on the host follows it, and inside it leads to what is inside."""
        if not 0 < len(os.fsencode(target)) <= MAX_LINK or "\0" in target:
            raise self.refuse(f"the link {name[:200]!r} is empty, has a zero byte or more than {MAX_LINK} bytes")
        place = self.place(name)
        place.unlink(missing_ok=True)
        place.symlink_to(target)

    def refuse(self, why: str) -> FreeholdError:
        return FreeholdError("computer.mount-refused", f"{self._source} cannot be mounted: {why}")


class UnpackedFolders:
    """`folder` holds one folder for each content that was asked for, named by a hash."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._used: set[str] = set()

    def provide(self, identity: str, source: str, fill: Callable[[FolderWriter], None]) -> Path:
        """The folder for `identity`. It is filled if it does not exist yet, completely or not at all."""
        name = hashlib.sha256(identity.encode()).hexdigest()[:32]
        self._used.add(name)
        place = self._folder / name
        if place.is_dir():
            return place
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = Path(tempfile.mkdtemp(prefix=".new-", dir=self._folder))
        try:
            draft.chmod(0o755)
            fill(FolderWriter(draft, source))
            draft.rename(place)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        return place

    def remove_others(self) -> None:
        """Remove what was not asked for since this object was made, and what interrupted runs left."""
        if self._folder.is_dir():
            _remove_all_but(self._folder, self._used)


def _remove_all_but(folder: Path, kept: Collection[str]) -> None:
    for found in folder.iterdir():
        if found.name not in kept:
            shutil.rmtree(found, ignore_errors=True)
