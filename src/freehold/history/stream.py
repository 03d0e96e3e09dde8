"""File changes as a stream with sequence numbers. It is bounded, and a reader that fell behind is told so."""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from itertools import islice

from freehold.history.model import ChangeWord

MAX_KEPT_CHANGES = 4096
MAX_BATCH_CHANGES = 1000
MAX_BATCH_BYTES = 256 << 10


@dataclass(frozen=True)
class FileChange:
    sequence: int
    path: bytes
    word: ChangeWord


@dataclass(frozen=True)
class FileChangeBatch:
    """The changes after the number that the reader had. With `relist` some were missed: list the folders and go on from `sequence`."""

    sequence: int
    items: tuple[FileChange, ...]
    relist: bool = False


class ChangeStream:
    """Thread-safe. One writer (the watcher) and any number of readers, which cannot slow it down."""

    def __init__(self) -> None:
        self._ready = threading.Condition()
        self._kept: deque[FileChange] = deque(maxlen=MAX_KEPT_CHANGES)
        self._sequence = 0
        self._relist_below = 0
        self._closed = False
        self._listeners: list[Callable[[], None]] = []

    @property
    def sequence(self) -> int:
        return self._sequence

    def publish(self, changes: Mapping[bytes, ChangeWord]) -> None:
        """More than MAX_BATCH_CHANGES at once are not listed; all readers are told to list the folders again."""
        if not changes:
            return
        with self._ready:
            if len(changes) > MAX_BATCH_CHANGES or sum(map(len, changes)) > MAX_BATCH_BYTES:
                self._require_relist()
            else:
                for path, word in changes.items():
                    self._sequence += 1
                    self._kept.append(FileChange(self._sequence, path, word))
                if len(self._kept) == MAX_KEPT_CHANGES:
                    self._relist_below = max(self._relist_below, self._kept[0].sequence - 1)
            self._wake()

    def relist(self) -> None:
        """Events were lost: tell all readers to list the folders again."""
        with self._ready:
            self._require_relist()
            self._wake()

    def _require_relist(self) -> None:
        self._sequence += 1
        self._kept.clear()
        self._relist_below = self._sequence

    def _wake(self) -> None:
        self._ready.notify_all()
        for listener in self._listeners:
            listener()

    def since(self, sequence: int) -> FileChangeBatch:
        """The next changes, without waiting. A number that is too high (from an earlier keeper) is answered with `relist`."""
        with self._ready:
            if sequence < self._relist_below or sequence > self._sequence:
                return FileChangeBatch(self._sequence, (), relist=True)
            items = tuple(islice((change for change in self._kept if change.sequence > sequence), MAX_BATCH_CHANGES))
            return FileChangeBatch(items[-1].sequence if items else self._sequence, items)

    def read(self, sequence: int, timeout: float) -> FileChangeBatch:
        """Waits in the calling thread for changes after `sequence`, at most `timeout` seconds."""
        with self._ready:
            self._ready.wait_for(lambda: self._closed or self._sequence != sequence, timeout)
            return self.since(sequence)

    async def follow(self, sequence: int | None = None) -> AsyncIterator[FileChangeBatch]:
        """All changes after `sequence` (by default from now on), until the stream is closed."""
        at = self._sequence if sequence is None else sequence
        loop = asyncio.get_running_loop()
        wake = asyncio.Event()

        def listener() -> None:
            loop.call_soon_threadsafe(wake.set)

        with self._ready:
            self._listeners.append(listener)
        try:
            while not self._closed:
                wake.clear()
                found = self.since(at)
                if found.items or found.relist:
                    at = found.sequence
                    yield found
                else:
                    await wake.wait()
        finally:
            with self._ready:
                self._listeners.remove(listener)

    def close(self) -> None:
        with self._ready:
            self._closed = True
            self._wake()
