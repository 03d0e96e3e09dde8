"""Text search in a separate process, which can be killed: a slow pattern does not block the guest."""

# pathlib is too slow to import here
# ruff: noqa: PTH116

from __future__ import annotations

import os

from freehold.guest.codec import encode_message, shorten
from freehold.guest.files import describe_error, open_regular
from freehold.guest.kernel import signals
from freehold.guest.link import Operation
from freehold.guest.process_table import send_signal
from freehold.guest.spawn import OperationError, to_bytes
from freehold.guest.streams import StreamSource
from freehold.guest.tree import walk_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from resource import struct_rusage
    from typing import Any

    from freehold.guest.link import GuestChannel
    from freehold.guest.process import ChildProcesses

MAX_FILE_SIZE = 64 * 1024 * 1024
MAX_LINE_SHOWN = 500
SHOWN_BEFORE_MATCH = 100
"""Bytes of a long line that are shown before a match that is far from its beginning."""


class SearchOperation(Operation):
    """Sends {"part": [[path, line, column, text], ...]} lines, then {"ok": ...}, on stream 1."""

    def __init__(self, nursery: ChildProcesses, channel: GuestChannel, message: dict[str, Any]) -> None:
        self._channel = channel
        to_bytes(message["pattern"])
        path = to_bytes(message["path"])
        path = path if path.startswith(b"/") else nursery.workspace + b"/" + path
        reading, writing = os.pipe()
        try:
            pid = os.fork()
        except OSError as error:
            os.close(reading)
            os.close(writing)
            raise OperationError(
                "computer.cannot-start", f"The computer cannot start another process: {error.strerror}"
            ) from None
        if pid == 0:
            _search_and_exit(writing, path, message)
        self._pid: int | None = pid
        os.close(writing)
        nursery.adopt(pid, self._ended)
        self._source = StreamSource(nursery.loop, channel, 1, reading, channel.finish)

    def credited(self) -> None:
        self._source.resume()

    def closed(self) -> None:
        self._source.close()
        if self._pid is not None:
            send_signal(self._pid, signals.SIGKILL)

    def _ended(self, status: int, usage: struct_rusage) -> None:
        self._pid = None


def _search_and_exit(descriptor: int, path: bytes, message: dict[str, Any]) -> None:
    """Runs in the child. The pattern is read here too: a long one takes seconds."""
    try:
        try:
            answer: dict[str, Any] = {"ok": _search(descriptor, path, _read_pattern(message), message)}
        except OSError as error:
            answer = {"error": describe_error(error)}
        except OperationError as error:
            answer = {"error": [error.code, shorten(str(error))]}
        except (KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
            answer = {"error": ["files.bad-request", shorten(f"{type(error).__name__}: {error}")]}
        _write(descriptor, answer)
    finally:
        os._exit(0)


def _read_pattern(message: dict[str, Any]) -> re.Pattern[bytes]:
    import re

    pattern = to_bytes(message["pattern"])
    try:
        return re.compile(
            pattern if message.get("regex") else re.escape(pattern),
            re.IGNORECASE * bool(message.get("ignore_case")) | re.MULTILINE,
        )
    except (re.error, OverflowError, RecursionError) as error:
        raise OperationError("files.bad-pattern", f"Not a regular expression: {error}") from None


def _search(descriptor: int, path: bytes, pattern: re.Pattern[bytes], message: dict[str, Any]) -> dict[str, Any]:
    most = int(message["most"])
    skip = [to_bytes(name) for name in message.get("skip", ())]
    wanted = None
    if message.get("glob"):
        import fnmatch
        import re

        wanted = re.compile(fnmatch.translate(message["glob"])).match
    count = files = 0
    batch: list[Any] = []
    single = not os.stat(path).st_mode & 0o040000
    rows: Any = iter([["", "file", 0]]) if single else walk_folder(path, 100_000, skip)
    for row in rows:
        if row is None or row[1] != "file" or row[2] > MAX_FILE_SIZE:
            continue
        name = row[0]
        if wanted is not None and wanted(name.rpartition("/")[2]) is None and wanted(name) is None:
            continue
        data = _read(path if single else path + b"/" + os.fsencode(name))
        files += 1
        for hit in _hits(data, pattern):
            if count >= most:
                _write(descriptor, {"part": batch})
                return {"count": count, "files": files, "more": True}
            batch.append([name, *hit])
            count += 1
            if len(batch) == 100:
                _write(descriptor, {"part": batch})
                batch = []
    _write(descriptor, {"part": batch})
    return {"count": count, "files": files, "more": False}


def _hits(data: bytes, pattern: re.Pattern[bytes]) -> Any:
    """Line number, column and text of the first match in each line."""
    line, counted, at = 1, 0, 0
    while at <= len(data):
        found = pattern.search(data, at)
        if found is None:
            return
        start = data.rfind(b"\n", 0, found.start()) + 1
        end = data.find(b"\n", found.start())
        end = len(data) if end < 0 else end
        line += data.count(b"\n", counted, start)
        counted = start
        yield line, found.start() - start + 1, _show_line(data, start, end, found)
        at = end + 1


def _show_line(data: bytes, start: int, end: int, found: re.Match[bytes]) -> str:
    """The begin of the line; the part around the match, after an ellipsis, when the match is not in it."""
    if min(found.end(), end) - start <= MAX_LINE_SHOWN:
        return os.fsdecode(data[start : min(end, start + MAX_LINE_SHOWN)])
    begin = max(start, found.start() - SHOWN_BEFORE_MATCH)
    while begin < found.start() and data[begin] & 0xC0 == 0x80:  # in the middle of a character
        begin += 1
    return ("…" if begin > start else "") + os.fsdecode(data[begin : min(end, begin + MAX_LINE_SHOWN)])


def _read(path: bytes) -> bytes:
    """The contents; empty for a file that cannot be read or is not text."""
    try:
        descriptor = open_regular(path, os.O_RDONLY)
    except OSError:
        return b""
    try:
        data = os.read(descriptor, 8192)
        if b"\0" in data:
            return b""
        parts = [data]
        while data and len(parts) * 1024 * 1024 <= MAX_FILE_SIZE:
            data = os.read(descriptor, 1024 * 1024)
            parts.append(data)
        return b"".join(parts)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _write(descriptor: int, answer: dict[str, Any]) -> None:
    view = memoryview(encode_message(answer) + b"\n")
    while view:
        view = view[os.write(descriptor, view) :]
