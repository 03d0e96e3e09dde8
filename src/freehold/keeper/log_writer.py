"""Writes the output of every program as structured lines, to files that are rotated and bounded.

One thread writes the lines, so that a slow or full disk does not block the keeper. Lines that cannot be written (too
many waiting, no space) are counted, and the count is written when there is space again.
"""

import collections
import contextlib
import json
import logging
import os
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from freehold.keeper.settings import LogLimits


class LogWriter:
    """Open it with `with`. Safe to call from any thread; no call waits for the disk."""

    def __init__(self, folder: Path, limits: LogLimits, now: Callable[[], float]) -> None:
        self._folder = folder
        self._limits = limits
        self._now = now
        self._waiting: collections.deque[tuple[str, bytes]] = collections.deque()
        self._waiting_bytes = 0
        self._lost: collections.Counter[str] = collections.Counter()
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="logbook", daemon=True)

    def __enter__(self) -> "LogWriter":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Returns when every line is on disk or counted as lost."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join(timeout=5)

    def write(self, program: str, stream: str, line: bytes, **marks: Any) -> None:
        """One line of output. A line that is a JSON object keeps its structure."""
        record: dict[str, Any] = {"time": self.timestamp(), "program": program, "stream": stream}
        data = _structured(line)
        if data is not None:
            record["level"] = str(data.get("level", "info")).lower()
            record["message"] = str(data.get("message", data.get("event", "")))
            record["data"] = data
        else:
            record["message"] = line.decode(errors="replace")
        self.write_record(record | marks)

    def note(self, program: str, level: str, message: str, **marks: Any) -> None:
        """A line of the keeper itself, about a program."""
        self.write_record(
            {"time": self.timestamp(), "program": program, "stream": "keeper", "level": level, "message": message}
            | marks
        )

    def write_record(self, record: dict[str, Any]) -> None:
        program = str(record["program"])
        line = json.dumps(record).encode("ascii") + b"\n"
        with self._changed:
            if self._waiting_bytes + len(line) > self._limits.waiting_bytes:
                self._lost[program] += 1
            else:
                self._waiting.append((program, line))
                self._waiting_bytes += len(line)
                self._changed.notify_all()

    def timestamp(self) -> str:
        return datetime.fromtimestamp(self._now(), UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self._closing)
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
            message = f"{lost} lines could not be written and are lost"
            record = {
                "time": self.timestamp(),
                "program": program,
                "stream": "keeper",
                "level": "warning",
                "message": message,
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
        """Write as many lines as the file has space for, and return their number. Rotates a full file and returns 0."""
        # Opened each time, so that writing works again after a full disk or a removed folder.
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


class LogWriterHandler(logging.Handler):
    """Sends log messages of the keeper itself to its log file."""

    def __init__(self, log_writer: LogWriter) -> None:
        super().__init__(logging.INFO)
        self._log_writer = log_writer

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if record.exc_info:
            message += "\n" + logging.Formatter().formatException(record.exc_info)
        self._log_writer.note("keeper", record.levelname.lower(), message, logger=record.name)


@contextlib.contextmanager
def log_to_writer(log_writer: LogWriter) -> Iterator[None]:
    """Python's own logging goes to the keeper's log file while this is open."""
    handler = LogWriterHandler(log_writer)
    root = logging.getLogger()
    root.addHandler(handler)
    before = root.level
    root.setLevel(logging.INFO)
    try:
        yield
    finally:
        root.removeHandler(handler)
        root.setLevel(before)


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
