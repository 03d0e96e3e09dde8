"""The log of events: JSON lines in numbered files. Several processes may read and write it."""

import fcntl
import json
import os
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from freehold.home import ensure_private_folder
from freehold.slots.events.cloud_event import PREFIX, SEQUENCE_DIGITS, CloudEvent, matches, read_event

SEGMENT_BYTES = 4 * 1024 * 1024
MIN_BYTES = 2 * SEGMENT_BYTES
MAX_LOOKED_AT = 20_000
"""Events that one read looks at, so that a rare type does not make it read the whole log."""
GROUP = 16
"""Events that are written without a pause."""
_START = len(PREFIX)
_CHUNK = 64 * 1024


@dataclass(frozen=True)
class LogPart:
    """Events that were read. `reached` is the last one that was looked at, whether it was wanted or not."""

    events: tuple[CloudEvent, ...]
    reached: int
    missed: int


@dataclass(frozen=True)
class LogEnds:
    """The first event that is kept, the last one, and the bytes of all. An empty log ends before it begins."""

    first: int
    last: int
    size: int


class EventLog:
    """Files of at most a few MiB, each named after its first event. The oldest is removed when all are too large.

    A line that a crash has cut off is removed by the next writer; readers never see it.
    """

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max(max_bytes, MIN_BYTES)
        self._inside = threading.RLock()
        self._held: int | None = None
        self._last: tuple[str, int, int] | None = None
        """The newest file, its size and its last event, as this process has left it."""

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Nobody else writes meanwhile. Can be entered again by the same thread."""
        with self._inside:
            if self._held is not None:
                yield
                return
            ensure_private_folder(self._folder)
            self._held = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(self._held, fcntl.LOCK_EX)
                yield
            finally:
                os.close(self._held)
                self._held = None

    def append(self, events: Sequence[CloudEvent], *, sync: bool = True) -> int:
        """Numbers the events and writes them. Returns the last number.

        They are on the disk when it returns. Without `sync` a power loss may take the last ones: never one in between,
        because a file is brought to the disk before the next one begins.
        """
        with self.locked():
            file, size, last = self._find_end()
            while events:
                if file is None or size >= SEGMENT_BYTES:
                    if file is not None:
                        _sync(file)
                    file, size = self._folder / f"{last + 1:0{SEQUENCE_DIGITS}}.jsonl", 0
                text, count = bytearray(), 0
                for event in events:
                    if size + len(text) >= SEGMENT_BYTES:
                        break
                    text += event.as_line(last + 1 + count)
                    count += 1
                    if count % GROUP == 0:
                        let_others_run()
                _write(file, text, sync=sync)
                size, last, events = size + len(text), last + count, events[count:]
                self._last = (file.name, size, last)
            self._remove_oldest()
            return last

    def sync(self) -> None:
        """Brings what was appended to the disk."""
        files = self._list_files()
        if files:
            _sync(files[-1])

    def read(self, after: int, limit: int, types: Sequence[str] = ()) -> LogPart:
        """At most `limit` events with a larger number, of at most `MAX_LOOKED_AT` that are looked at.

        `missed` events between are not kept any more.
        """
        found: list[CloudEvent] = []
        looked_at = 0
        files = self._list_files()
        kept = _first_of(files[0]) if files else after + 1
        missed = max(0, kept - after - 1)
        reached = max(after, kept - 1)
        for place, file in enumerate(files):
            if place + 1 < len(files) and _first_of(files[place + 1]) <= reached + 1:
                continue
            for event in _read_from(file, reached + 1):
                reached = event.sequence
                looked_at += 1
                if not types or any(matches(pattern, event.type) for pattern in types):
                    found.append(event)
                if len(found) == limit or looked_at == MAX_LOOKED_AT:
                    return LogPart(tuple(found), reached, missed)
        return LogPart(tuple(found), reached, missed)

    def ends(self) -> LogEnds:
        files = self._list_files()
        if not files:
            return LogEnds(1, 0, 0)
        size = sum(_size_of(file) for file in files)
        return LogEnds(_first_of(files[0]), self._find_last(files), size)

    def size_after(self, sequence: int) -> int:
        """The bytes of the files in which events after this one are."""
        files = self._list_files()
        total = 0
        for place, file in enumerate(files):
            if place + 1 < len(files) and _first_of(files[place + 1]) <= sequence + 1:
                continue
            total += _size_of(file)
        return total

    @property
    def max_bytes(self) -> int:
        return self._max_bytes

    def _find_end(self) -> tuple[Path | None, int, int]:
        """The newest file with its size and last event. Removes a line that was cut off."""
        files = self._list_files()
        if not files:
            return None, 0, 0
        file = files[-1]
        size = file.stat().st_size
        if self._last is not None and self._last[:2] == (file.name, size):
            return file, size, self._last[2]
        with file.open("r+b") as opened:
            whole = _end_of_last_line(opened, size)
            if whole < size:
                opened.truncate(whole)
                os.fsync(opened.fileno())
        return file, whole, self._find_last(files)

    def _find_last(self, files: list[Path]) -> int:
        if self._last is not None and self._last[:2] == (files[-1].name, _size_of(files[-1])):
            return self._last[2]
        with files[-1].open("rb") as opened:
            end = _end_of_last_line(opened, files[-1].stat().st_size)
            if end == 0:
                return _first_of(files[-1]) - 1
            begin = _end_of_last_line(opened, end - 1)
            opened.seek(begin)
            return _sequence_of(opened.read(_START + SEQUENCE_DIGITS))

    def _remove_oldest(self) -> None:
        files = self._list_files()
        total = sum(_size_of(file) for file in files)
        while len(files) > 1 and total > self._max_bytes:
            total -= _size_of(files[0])
            files.pop(0).unlink(missing_ok=True)

    def _list_files(self) -> list[Path]:
        return sorted(self._folder.glob(f"{'[0-9]' * SEQUENCE_DIGITS}.jsonl"))


def let_others_run() -> None:
    """Python runs one thread at a time, and changes it every 5 ms unless the thread waits: publishers wait less."""
    time.sleep(0.0001)


def _write(file: Path, text: bytes | bytearray, *, sync: bool) -> None:
    """When it fails, the file is as before: half a line would be taken for the start of the next one."""
    is_new = not file.exists()
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        before = os.fstat(descriptor).st_size
        try:
            view = memoryview(text)
            while view:
                view = view[os.write(descriptor, view) :]
            if sync:
                os.fdatasync(descriptor)
        except OSError:
            os.ftruncate(descriptor, before)
            raise
    finally:
        os.close(descriptor)
    if is_new:
        _sync(file.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _read_from(file: Path, sequence: int) -> Iterator[CloudEvent]:
    """The events of a file from this one on. A file that was removed meanwhile has none."""
    try:
        with file.open("rb") as opened:
            size = _end_of_last_line(opened, os.fstat(opened.fileno()).st_size)
            opened.seek(_find_line(opened, size, sequence))
            for line in opened:
                if not line.endswith(b"\n"):
                    return
                yield read_event(json.loads(line))
    except FileNotFoundError:
        return


def _find_line(file: BinaryIO, size: int, sequence: int) -> int:
    """Where the line of an event begins, by halving: numbers grow, and each stands at the start of its line."""
    low, high = 0, size
    while low < high:
        middle = begin = (low + high) // 2
        if middle > low:
            file.seek(middle - 1)
            begin = middle - 1 + len(file.readline())
        if begin >= high:
            high = middle
            continue
        file.seek(begin)
        line = file.readline()
        if _sequence_of(line) < sequence:
            low = begin + len(line)
        else:
            high = begin
    return low


def _end_of_last_line(file: BinaryIO, size: int) -> int:
    """The place after the last newline before `size`; 0 when there is none."""
    end = size
    while end > 0:
        begin = max(0, end - _CHUNK)
        file.seek(begin)
        found = file.read(end - begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0


def _sequence_of(line: bytes) -> int:
    return int(line[_START : _START + SEQUENCE_DIGITS])


def _first_of(file: Path) -> int:
    return int(file.name[:SEQUENCE_DIGITS])


def _size_of(file: Path) -> int:
    try:
        return file.stat().st_size
    except FileNotFoundError:
        return 0
