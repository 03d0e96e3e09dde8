"""Contents that a node has seen, by hash, so that they are sent to it once. Bounded: the oldest go first."""

import os
import threading
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Self

MAX_CONTENT = 1024 * 1024
"""Longer contents are not kept: they are rarely the same twice, and would push out thousands of others."""
_SEGMENTS = 8


class ContentCache:
    """A few files, each with many contents one after the other. It is empty when the node starts. Thread-safe."""

    def __init__(self, folder: Path, size: int) -> None:
        self._folder = folder
        self._segment_size = max(MAX_CONTENT, size // _SEGMENTS)
        self._segments: deque[tuple[int, set[str]]] = deque()
        self._index: dict[str, tuple[int, int, int]] = {}
        self._used = 0
        self._lock = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for old in folder.iterdir():
            old.unlink()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            for handle, _ in self._segments:
                os.close(handle)
            self._segments.clear()
            self._index.clear()

    @property
    def size(self) -> int:
        """Bytes on the disk."""
        with self._lock:
            return sum(os.fstat(handle).st_size for handle, _ in self._segments)

    def __contains__(self, content: str) -> bool:
        with self._lock:
            return content in self._index

    def get(self, content: str) -> bytes | None:
        with self._lock:
            place = self._index.get(content)
            return None if place is None else os.pread(place[0], place[2], place[1])

    def add(self, content: str, data: bytes) -> None:
        """The caller has compared the hash."""
        if len(data) > MAX_CONTENT:
            return
        with self._lock:
            if content in self._index:
                return
            if not self._segments or self._used + len(data) > self._segment_size:
                self._begin_segment()
            handle, names = self._segments[-1]
            os.pwrite(handle, data, self._used)
            self._index[content] = (handle, self._used, len(data))
            names.add(content)
            self._used += len(data)

    def _begin_segment(self) -> None:
        while len(self._segments) >= _SEGMENTS:
            handle, names = self._segments.popleft()
            for name in names:
                del self._index[name]
            os.close(handle)
        path = self._folder / f"segment-{os.urandom(6).hex()}"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        path.unlink()  # it ends with the node, however that ends
        self._segments.append((handle, set()))
        self._used = 0
