"""Reads the log files. Works without a keeper, and imports very little."""

import heapq
import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from freehold.errors import FreeholdError

_NAME = re.compile(r"(?P<program>[a-z0-9][a-z0-9_-]*)(\.(?P<number>\d+))?\.jsonl")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
POLL_INTERVAL = 0.1


def parse_since(text: str, now: float) -> str:
    """`10m`, `2h`, `3d` or an ISO time, as the beginning of a timestamp in the logs."""
    found = re.fullmatch(r"(\d{1,9})([smhd])", text, re.ASCII)
    if found:
        moment = max(0.0, now - int(found[1]) * _UNITS[found[2]])
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment))
    if re.fullmatch(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?Z?)?", text, re.ASCII):
        return text.replace(" ", "T").rstrip("Z")
    raise FreeholdError(
        "logs.bad-since", f"{text!r} is not a time", hint="Use 30s, 10m, 2h, 3d or 2026-01-31T12:00 (UTC)"
    )


def list_logged_programs(folder: Path) -> list[str]:
    return sorted({found["program"] for path in _files(folder) if (found := _NAME.fullmatch(path.name))})


class LogReader:
    """The lines of one program, or of all programs in order of time: stored lines first, then new ones."""

    def __init__(self, folder: Path, program: str | None = None) -> None:
        self._folder = folder
        self._program = program
        self._ends = {path: _end(path) for path in _files(folder)}

    def stored_lines(self, since: str | None = None) -> Iterator[dict[str, Any]]:
        """Oldest first; raises `logs.no-such-program` when the program has no logs."""
        sources = [self._of_program(name, since) for name in self._chosen()]
        return heapq.merge(*sources, key=_moment)

    def follow_lines(self) -> Iterator[dict[str, Any]]:
        """Continues after `stored_lines` and never ends; notices rotation and new programs."""
        while True:
            batch: list[dict[str, Any]] = []
            for path in _files(self._folder):
                found = _NAME.fullmatch(path.name)
                if found is None or found["number"] or self._program not in (None, found["program"]):
                    continue
                lines, self._ends[path] = _read_on(path, *self._ends.get(path, (0, 0)))
                batch += lines
            yield from sorted(batch, key=_moment)
            if not batch:
                time.sleep(POLL_INTERVAL)

    def _chosen(self) -> list[str]:
        names = list_logged_programs(self._folder)
        if self._program is None:
            return names
        if self._program not in names:
            raise FreeholdError(
                "logs.no-such-program",
                f"There are no logs of {self._program!r}",
                hint=f"There are logs of: {', '.join(names) or 'nothing yet'}",
            )
        return [self._program]

    def _of_program(self, program: str, since: str | None) -> Iterator[dict[str, Any]]:
        numbered = []
        for path in self._ends:
            found = _NAME.fullmatch(path.name)
            if found and found["program"] == program:
                numbered.append((int(found["number"] or 0), path))
        for _, path in sorted(numbered, reverse=True):
            try:
                with path.open("rb") as file:
                    left = self._ends[path][1]
                    for raw in file:
                        left -= len(raw)
                        if left < 0:
                            break
                        line = _decode(raw)
                        if line is not None and (since is None or _moment(line) >= since):
                            yield line
            except FileNotFoundError:  # rotated while it was read
                continue


def _read_on(path: Path, inode: int, position: int) -> tuple[list[dict[str, Any]], tuple[int, int]]:
    lines: list[dict[str, Any]] = []
    try:
        with path.open("rb") as file:
            now = os.fstat(file.fileno())
            if inode and now.st_ino != inode:
                # Rotated since the last read: first read the rest of the old file.
                older = path.with_name(f"{path.stem}.1.jsonl")
                if older.exists() and older.stat().st_ino == inode:
                    lines += _read_on(older, inode, position)[0]
                position = 0
            file.seek(min(position, now.st_size))
            data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            lines += [line for raw in whole.splitlines() if (line := _decode(raw)) is not None]
            return lines, (now.st_ino, min(position, now.st_size) + len(whole))
    except FileNotFoundError:
        return lines, (0, 0)


def _moment(line: dict[str, Any]) -> str:
    return str(line.get("time", ""))


def _end(path: Path) -> tuple[int, int]:
    now = path.stat()
    return now.st_ino, now.st_size


def _files(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.name.endswith(".jsonl")]
    except FileNotFoundError:
        return []


def _decode(raw: bytes) -> dict[str, Any] | None:
    """None for a line that a full disk or a power cut left incomplete."""
    try:
        line = json.loads(raw)
    except ValueError:
        return None
    return line if isinstance(line, dict) else None
