"""Reading the logs from their files, with the keeper up or down. Imports next to nothing."""

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
POLL = 0.1


def parse_since(text: str, now: float) -> str:
    """`10m`, `2h`, `3d` or an ISO time, as the stamp lines of that moment carry."""
    found = re.fullmatch(r"(\d+)([smhd])", text)
    if found:
        moment = now - int(found[1]) * _UNITS[found[2]]
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment))
    if re.fullmatch(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?(Z)?)?", text):
        return text.replace(" ", "T").rstrip("Z")
    raise FreeholdError(
        "logs.bad-since", f"{text!r} is not a time", hint="Say 30s, 10m, 2h, 3d or 2026-01-31T12:00 (UTC)"
    )


def programs_with_logs(folder: Path) -> list[str]:
    return sorted({found["program"] for path in _files(folder) if (found := _NAME.fullmatch(path.name))})


def read_lines(folder: Path, program: str | None = None, since: str | None = None) -> Iterator[dict[str, Any]]:
    """Every kept line, oldest first, of one program or of all merged by time."""
    names = _chosen(folder, program)
    return heapq.merge(
        *(_of_program(folder, name, since) for name in names), key=lambda line: str(line.get("time", ""))
    )


def follow_lines(folder: Path, program: str | None = None) -> Iterator[list[dict[str, Any]]]:
    """New lines as they are written, in batches (empty ones while nothing comes); sees rotation and new programs."""
    ends = {path: _end(path) for path in _files(folder)}
    while True:
        batch: list[dict[str, Any]] = []
        for path in _files(folder):
            found = _NAME.fullmatch(path.name)
            if found is None or found["number"] or program not in (None, found["program"]):
                continue
            inode, position = ends.get(path, (0, 0))
            lines, ends[path] = _read_on(path, inode, position)
            batch += lines
        yield sorted(batch, key=lambda line: str(line.get("time", "")))
        if not batch:
            time.sleep(POLL)


def _read_on(path: Path, inode: int, position: int) -> tuple[list[dict[str, Any]], tuple[int, int]]:
    lines: list[dict[str, Any]] = []
    try:
        with path.open("rb") as file:
            now = os.fstat(file.fileno())
            if inode and now.st_ino != inode:
                # Rotated away in between: first what was still written to the old one.
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


def _end(path: Path) -> tuple[int, int]:
    now = path.stat()
    return now.st_ino, now.st_size


def _chosen(folder: Path, program: str | None) -> list[str]:
    names = programs_with_logs(folder)
    if program is None:
        return names
    if program not in names:
        raise FreeholdError(
            "logs.no-such-program",
            f"There are no logs of {program!r}",
            hint=f"There are logs of: {', '.join(names) or 'nothing yet'}",
        )
    return [program]


def _of_program(folder: Path, program: str, since: str | None) -> Iterator[dict[str, Any]]:
    numbered = []
    for path in _files(folder):
        found = _NAME.fullmatch(path.name)
        if found and found["program"] == program:
            numbered.append((int(found["number"] or 0), path))
    for _, path in sorted(numbered, reverse=True):
        try:
            with path.open("rb") as file:
                for raw in file:
                    line = _decode(raw)
                    if line is not None and (since is None or str(line.get("time", "")) >= since):
                        yield line
        except FileNotFoundError:  # rotated away while we read
            continue


def _files(folder: Path) -> list[Path]:
    try:
        return [path for path in folder.iterdir() if path.name.endswith(".jsonl")]
    except FileNotFoundError:
        return []


def _decode(raw: bytes) -> dict[str, Any] | None:
    """None for a line that was cut off by a full disk or a power cut."""
    try:
        line = json.loads(raw)
    except ValueError:
        return None
    return line if isinstance(line, dict) else None
