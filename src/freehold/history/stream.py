"""File changes as a stream with sequence numbers: coalesced, bounded, and honest to a reader that fell behind."""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from itertools import islice

from freehold.history.model import ChangeWord

KEPT = 4096
MAX_AT_ONCE = 1000
MAX_BYTES_AT_ONCE = 256 << 10


@dataclass(frozen=True)
class FileChange:
    sequence: int
    path: bytes
    word: ChangeWord


@dataclass(frozen=True)
class Changes:
    """What came after the number the reader had. With `relist` the reader missed some: list the folders, go on from `sequence`."""

    sequence: int
    items: tuple[FileChange, ...]
    relist: bool = False


class ChangeStream:
    """Thread-safe. One writer (the watcher), any number of readers, none of which can slow it down."""

    def __init__(self) -> None:
        self._ready = threading.Condition()
        self._kept: deque[FileChange] = deque(maxlen=KEPT)
        self._sequence = 0
        self._relist_below = 0
        self._closed = False
        self._listeners: list[Callable[[], None]] = []

    @property
    def sequence(self) -> int:
        return self._sequence

    def publish(self, changes: Mapping[bytes, ChangeWord]) -> None:
        """A burst larger than MAX_AT_ONCE becomes a re-list mark for everybody."""
        if not changes:
            return
        with self._ready:
            if len(changes) > MAX_AT_ONCE or sum(map(len, changes)) > MAX_BYTES_AT_ONCE:
                self._tell_to_relist()
            else:
                for path, word in changes.items():
                    self._sequence += 1
                    self._kept.append(FileChange(self._sequence, path, word))
                if len(self._kept) == KEPT:
                    self._relist_below = max(self._relist_below, self._kept[0].sequence - 1)
            self._wake()

    def relist(self) -> None:
        """Events were lost, or a restore touched more than is worth naming."""
        with self._ready:
            self._tell_to_relist()
            self._wake()

    def _tell_to_relist(self) -> None:
        self._sequence += 1
        self._kept.clear()
        self._relist_below = self._sequence

    def _wake(self) -> None:
        self._ready.notify_all()
        for listener in self._listeners:
            listener()

    def since(self, sequence: int) -> Changes:
        """Without waiting. A number from the future (another keeper's life) is answered with re-list."""
        with self._ready:
            if sequence < self._relist_below or sequence > self._sequence:
                return Changes(self._sequence, (), relist=True)
            items = tuple(islice((change for change in self._kept if change.sequence > sequence), MAX_AT_ONCE))
            return Changes(items[-1].sequence if items else self._sequence, items)

    def read(self, sequence: int, timeout: float) -> Changes:
        """Waits in the calling thread until there is something after `sequence`, or the time is over."""
        with self._ready:
            self._ready.wait_for(lambda: self._closed or self._sequence != sequence, timeout)
            return self.since(sequence)

    async def follow(self, sequence: int | None = None) -> AsyncIterator[Changes]:
        """Every change after `sequence` (default: from now on), until the stream is closed."""
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
