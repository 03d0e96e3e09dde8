"""Compiled WebAssembly modules, by the hash of what they were compiled from.

They are files without a name that only the guest has open, so that no program inside can change one. An isolate gets a
descriptor to read from.
"""

from __future__ import annotations

import os

MAX_MODULES = 64
MAX_BYTES = 128 * 1024 * 1024
"""They are in memory, so they count as memory of the computer. The one that was not used for longest goes first."""
PLACE = "/tmp"  # noqa: S108


class ModuleStore:
    def __init__(self) -> None:
        self._files: dict[str, tuple[int, int]] = {}

    def find(self, digest: str) -> int | None:
        """A descriptor for reading; valid until control returns to the loop. None if the module is not kept."""
        found = self._files.pop(digest, None)
        if found is None:
            return None
        self._files[digest] = found  # the last is the one that was used last
        return found[0]

    def keep(self, digest: str, file: int, size: int) -> None:
        """Takes the descriptor over."""
        known = self._files.pop(digest, None)
        if known is not None:
            os.close(known[0])
        self._files[digest] = file, size
        while len(self._files) > MAX_MODULES or sum(size for _, size in self._files.values()) > MAX_BYTES:
            oldest, _ = self._files.pop(next(iter(self._files)))
            os.close(oldest)


class ModuleDraft:
    """A compiled module that arrives from its isolate."""

    def __init__(self, store: ModuleStore, digest: str, size: int) -> None:
        self._store = store
        self._digest = digest
        self._size = self._missing = size
        self._writer = -1
        try:
            self._writer = os.open(PLACE, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o400)
        except OSError:
            return  # no room: the module runs and is not kept

    def write(self, data: bytes) -> None:
        """Once all bytes have come, the module is kept."""
        self._missing -= len(data)
        if self._writer < 0:
            return
        try:
            while data:
                data = data[os.write(self._writer, data) :]
            if not self._missing:
                file = os.open(f"/proc/self/fd/{self._writer}", os.O_RDONLY | os.O_CLOEXEC)
                self._store.keep(self._digest, file, self._size)
        except OSError:
            self._missing = -1
        if self._missing <= 0:
            self.close()

    def close(self) -> None:
        """Idempotent. A module that has not come whole is dropped."""
        if self._writer >= 0:
            os.close(self._writer)
            self._writer = -1
