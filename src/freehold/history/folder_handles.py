"""Handles on folders that are opened by their path, part by part and never through a symlink. Neighbours share the way."""

import os
from collections.abc import Mapping
from pathlib import Path

from freehold.history.tree_reader import WidenedModes

NamePath = tuple[bytes, ...]
_MAX_OPEN = 32
_MAX_REUSED = 500


class FolderHandles:
    """One folder at a time. The folders above it stay open, a bounded number of them, so that the next one is near.

    After some hundred folders the way begins at the root again: a program may have moved a folder in the meantime.
    """

    def __init__(self, roots: Mapping[bytes, Path], modes: WidenedModes) -> None:
        self._roots = roots
        self._modes = modes
        self._names: list[bytes] = []
        self._handles: list[int] = []
        self._closed = 0  # how many of the handles, from the root on, are closed again
        self._reused = 0
        self._entered: NamePath | None = None

    @property
    def depth(self) -> int:
        """How many parts of the last path are open: fewer than it has when it could not be entered."""
        return len(self._names)

    def enter(self, path: NamePath) -> int:
        """A handle on the folder at `path`, valid until the next call. OSError when a part of it is not a folder."""
        if path == self._entered and self._reused < _MAX_REUSED:
            self._reused += 1
            return self._handles[-1]
        self._entered = None
        self._go_up(self._count_shared(path))
        for part in path[len(self._names) :]:
            if self._handles:
                handle = self._modes.open_folder(self._handles[-1], part)
            else:
                handle = self._modes.open_root(self._roots[part])
            self._names.append(part)
            self._handles.append(handle)
            if len(self._handles) - self._closed > _MAX_OPEN:
                os.close(self._handles[self._closed])
                self._closed += 1
        self._entered = path
        return self._handles[-1]

    def close(self) -> None:
        """Idempotent; it can be used again."""
        self._entered = None
        self._go_up(0)

    def _count_shared(self, path: NamePath) -> int:
        """How many folders on the way to `path` are open already."""
        self._reused += 1
        if self._reused > _MAX_REUSED:
            self._reused = 0
            return 0
        shared = 0
        for one, other in zip(self._names, path, strict=False):
            if one != other:
                break
            shared += 1
        return shared if shared > self._closed else 0

    def _go_up(self, depth: int) -> None:
        for handle in self._handles[max(depth, self._closed) :]:
            os.close(handle)
        del self._handles[depth:], self._names[depth:]
        self._closed = min(self._closed, depth)
