"""Taking in a program's output without being drowned by it."""

import asyncio
import os

from freehold.keeper.logbook import Logbook
from freehold.keeper.settings import LogLimits

CHUNK = 256 << 10
# While a program is over its rate its pipe is emptied only this often: a flood costs a bounded share of a core.
FLOOD_PAUSE = 0.01


class Allowance:
    """Bytes per second, with a burst; shared by both streams of a program."""

    def __init__(self, limits: LogLimits, now: float) -> None:
        self._limits = limits
        self._left = float(limits.burst_bytes)
        self._at = now

    def take(self, amount: int, now: float) -> bool:
        self._left = min(self._limits.burst_bytes, self._left + (now - self._at) * self._limits.bytes_per_second)
        self._at = now
        if self._left < amount:
            return False
        self._left -= amount
        return True


class LineSink:
    """Bytes in, lines in the log: of bounded length, at a bounded rate, with what was left out counted."""

    def __init__(self, program: str, stream: str, book: Logbook, limits: LogLimits, allowance: Allowance) -> None:
        self._program = program
        self._stream = stream
        self._book = book
        self._limits = limits
        self._allowance = allowance
        self._partial = b""
        self._skipping = False
        self._dropped_lines = 0
        self._dropped_bytes = 0

    def feed(self, data: bytes) -> bool:
        """False when it came too fast and was not kept: the caller should take a breath."""
        if not self._allowance.take(len(data), asyncio.get_running_loop().time()):
            self._dropped_bytes += len(data)
            self._dropped_lines += data.count(b"\n")
            # What is left of a line that was cut by the drop belongs to nothing any more.
            self._partial, self._skipping = b"", not data.endswith(b"\n")
            return False
        self._tell_dropped()
        *lines, rest = (self._partial + data).split(b"\n")
        for line in lines:
            if self._skipping:
                self._skipping = False
            else:
                self._keep(line)
        self._partial = b"" if self._skipping else rest
        if len(self._partial) > self._limits.line_bytes:
            self._keep(self._partial)
            self._partial, self._skipping = b"", True
        return True

    def close(self) -> None:
        if self._partial:
            self._keep(self._partial)
            self._partial = b""
        self._tell_dropped()

    def _keep(self, line: bytes) -> None:
        line = line.rstrip(b"\r")
        if len(line) > self._limits.line_bytes:
            self._book.write(self._program, self._stream, line[: self._limits.line_bytes], truncated=True)
        elif line:
            self._book.write(self._program, self._stream, line)

    def _tell_dropped(self) -> None:
        if self._dropped_bytes:
            words = f"{self._dropped_lines} lines ({self._dropped_bytes} bytes) came too fast and were not kept"
            marks = {"dropped_lines": self._dropped_lines, "dropped_bytes": self._dropped_bytes}
            self._dropped_lines = self._dropped_bytes = 0
            self._book.note(self._program, "warning", words, **marks)


class Capture:
    """Follows one pipe to its end. Owns the descriptor and closes it."""

    def __init__(self, descriptor: int, sink: LineSink) -> None:
        self._loop = asyncio.get_running_loop()
        self._descriptor = descriptor
        self._sink = sink
        self.done = asyncio.Event()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._readable)

    def close(self) -> None:
        """Stop reading; idempotent."""
        if self.done.is_set():
            return
        self.done.set()
        self._loop.remove_reader(self._descriptor)
        os.close(self._descriptor)
        self._sink.close()

    def _readable(self) -> None:
        try:
            data = os.read(self._descriptor, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
        elif not self._sink.feed(data):
            self._loop.remove_reader(self._descriptor)
            self._loop.call_later(FLOOD_PAUSE, self._resume)

    def _resume(self) -> None:
        if not self.done.is_set():
            self._loop.add_reader(self._descriptor, self._readable)
