"""What every program said, as structured lines in files that are rotated and bounded.

Lines are handed over by the event loop and written by one thread, so that a slow or full disk holds up nobody. What
cannot be kept (too fast, too much waiting, no space) is counted, and the count is written when there is room again.
"""

import asyncio
import collections
import contextlib
import json
import logging
import os
import threading
from collections.abc import AsyncGenerator, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from freehold.errors import FreeholdError
from freehold.keeper.settings import LogLimits

FOLLOWER_QUEUE = 2000
Lines = asyncio.Queue[dict[str, Any] | None]


class Logbook:
    """Open it with `with`. Lines may be handed over from any thread; nobody waits for the disk."""

    def __init__(self, folder: Path, limits: LogLimits, now: Callable[[], float]) -> None:
        self._folder = folder
        self._limits = limits
        self._now = now
        self._waiting: collections.deque[tuple[str, bytes]] = collections.deque()
        self._waiting_bytes = 0
        self._lost: collections.Counter[str] = collections.Counter()
        self._changed = threading.Condition()
        self._closing = False
        self._busy = False
        self._followers: dict[Lines, tuple[asyncio.AbstractEventLoop, str | None]] = {}
        self._thread = threading.Thread(target=self._work, name="logbook", daemon=True)

    def __enter__(self) -> "Logbook":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Everything handed over is on disk, or counted as lost, when this returns."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(timeout=5)

    def flush(self, timeout: float = 5.0) -> bool:
        """Blocks until all that was handed over is on disk, or counted as lost."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting and not self._busy, timeout)

    def write(self, program: str, stream: str, line: bytes, **marks: Any) -> None:
        """One line of output. A line that is a JSON object keeps its structure."""
        record: dict[str, Any] = {"time": self.stamp(), "program": program, "stream": stream}
        data = _structured(line)
        if data is not None:
            record["level"] = str(data.get("level", "info")).lower()
            record["message"] = str(data.get("message", data.get("event", "")))
            record["data"] = data
        else:
            record["message"] = line.decode(errors="replace")
        self.put(record | marks)

    def note(self, program: str, level: str, message: str, **marks: Any) -> None:
        """A line of the keeper's own."""
        self.put(
            {"time": self.stamp(), "program": program, "stream": "keeper", "level": level, "message": message} | marks
        )

    def put(self, record: dict[str, Any]) -> None:
        program = str(record["program"])
        line = json.dumps(record).encode("ascii") + b"\n"
        with self._changed:
            if self._waiting_bytes + len(line) > self._limits.waiting_bytes:
                self._lost[program] += 1
            else:
                self._waiting.append((program, line))
                self._waiting_bytes += len(line)
                self._changed.notify_all()
        for queue, (loop, wanted) in list(self._followers.items()):
            if wanted in (None, program):
                loop.call_soon_threadsafe(self._offer, queue, record)

    def stamp(self) -> str:
        return datetime.fromtimestamp(self._now(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    async def follow(self, program: str | None = None) -> AsyncGenerator[dict[str, Any], None]:
        """Lines as they come. A reader that falls behind is dropped and told so; the files have everything."""
        queue = Lines(FOLLOWER_QUEUE)
        self._followers[queue] = (asyncio.get_running_loop(), program)
        try:
            while (record := await queue.get()) is not None:
                yield record
            raise FreeholdError(
                "logs.fell-behind", "The lines came faster than they were read", hint="Read the files: freehold logs"
            )
        finally:
            self._followers.pop(queue, None)

    def _offer(self, queue: Lines, record: dict[str, Any]) -> None:
        if queue not in self._followers:
            return
        try:
            queue.put_nowait(record)
        except asyncio.QueueFull:
            del self._followers[queue]
            queue.get_nowait()
            queue.put_nowait(None)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._waiting or self._closing)
                self._busy = True
                batch = list(self._waiting)
                self._waiting.clear()
                self._waiting_bytes = 0
                if not batch:
                    return
            lines: dict[str, list[bytes]] = {}
            for program, line in batch:
                lines.setdefault(program, []).append(line)
            for program, of_one in lines.items():
                self._append(program, of_one)

    def _append(self, program: str, lines: list[bytes]) -> None:
        with self._changed:
            lost = self._lost.pop(program, 0)
        if lost:
            words = f"{lost} lines could not be written and are lost"
            record = {
                "time": self.stamp(),
                "program": program,
                "stream": "keeper",
                "level": "warning",
                "message": words,
            }
            lines = [json.dumps(record).encode() + b"\n", *lines]
        path = log_file(self._folder, program)
        place = 0
        try:
            while place < len(lines):
                place += self._fill(path, lines[place:])
        except OSError:
            with self._changed:
                noted = 1 if lost and place == 0 else 0
                self._lost[program] += len(lines) - place - noted + (lost if noted else 0)

    def _fill(self, path: Path, lines: list[bytes]) -> int:
        """Write as many lines as the file has room for; how many that were. A full one is rotated away first."""
        # Opened anew each time: a folder that was removed or a disk that was full heals by itself.
        with open(path, "ab", buffering=0, opener=_private) as file:
            room = self._limits.file_bytes - file.tell()
            fits = 0
            while fits < len(lines) and (room := room - len(lines[fits])) >= 0:
                fits += 1
            if fits or file.tell() == 0:
                fits = max(fits, 1)
                file.write(b"".join(lines[:fits]))
                return fits
        self._rotate(path)
        return 0

    def _rotate(self, path: Path) -> None:
        for number in range(self._limits.files - 1, 0, -1):
            older = log_file(path.parent, path.stem, number)
            newer = log_file(path.parent, path.stem, number - 1)
            with contextlib.suppress(FileNotFoundError):
                newer.replace(older)


class LogbookHandler(logging.Handler):
    """The keeper's own log, in the same book as everybody else's."""

    def __init__(self, book: Logbook) -> None:
        super().__init__(logging.INFO)
        self._book = book

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if record.exc_info:
            message += "\n" + logging.Formatter().formatException(record.exc_info)
        self._book.note("keeper", record.levelname.lower(), message, logger=record.name)


def log_file(folder: Path, program: str, number: int = 0) -> Path:
    return folder / (f"{program}.jsonl" if number == 0 else f"{program}.{number}.jsonl")


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def _structured(line: bytes) -> dict[str, Any] | None:
    if not line.startswith(b"{"):
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
