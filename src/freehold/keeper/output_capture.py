"""Reads the output of programs, with limits on its rate and line length."""

import asyncio
import os

from freehold.keeper.log_writer import LogWriter
from freehold.keeper.settings import LogLimits

CHUNK_BYTES = 256 << 10
# While a program writes too fast, its pipe is read only this often, so that it uses a bounded share of a core.
FLOOD_PAUSE = 0.01


class OutputRateLimit:
    """A token bucket in bytes, shared by both streams of a program."""

    def __init__(self, limits: LogLimits, now: float) -> None:
        self._limits = limits
        self._left = float(limits.burst_bytes)
        self._at = now

    def try_consume(self, amount: int, now: float) -> bool:
        self._left = min(self._limits.burst_bytes, self._left + (now - self._at) * self._limits.bytes_per_second)
        self._at = now
        if self._left < amount:
            return False
        self._left -= amount
        return True


class LineSink:
    """Splits bytes into lines for the log. Cuts long lines; counts what came too fast and drops it."""

    def __init__(
        self, program: str, stream: str, log_writer: LogWriter, limits: LogLimits, rate_limit: OutputRateLimit
    ) -> None:
        self._program = program
        self._stream = stream
        self._log_writer = log_writer
        self._limits = limits
        self._rate_limit = rate_limit
        self._partial = b""
        self._skipping = False
        self._dropped_lines = 0
        self._dropped_bytes = 0

    def feed(self, data: bytes) -> bool:
        """False when the data came too fast and was dropped: the caller should pause."""
        if not self._rate_limit.try_consume(len(data), asyncio.get_running_loop().time()):
            self._dropped_bytes += len(data)
            self._dropped_lines += data.count(b"\n")
            # The rest of a line that was partly dropped is dropped as well.
            self._partial, self._skipping = b"", not data.endswith(b"\n")
            return False
        self._report_dropped()
        *lines, rest = (self._partial + data).split(b"\n")
        for line in lines:
            if self._skipping:
                self._skipping = False
            else:
                self._write_line(line)
        self._partial = b"" if self._skipping else rest
        if len(self._partial) > self._limits.line_bytes:
            self._write_line(self._partial)
            self._partial, self._skipping = b"", True
        return True

    def close(self) -> None:
        if self._partial:
            self._write_line(self._partial)
            self._partial = b""
        self._report_dropped()

    def _write_line(self, line: bytes) -> None:
        line = line.rstrip(b"\r")
        if len(line) > self._limits.line_bytes:
            self._log_writer.write(self._program, self._stream, line[: self._limits.line_bytes], truncated=True)
        elif line:
            self._log_writer.write(self._program, self._stream, line)

    def _report_dropped(self) -> None:
        if self._dropped_bytes:
            message = f"{self._dropped_lines} lines ({self._dropped_bytes} bytes) came too fast and were dropped"
            marks = {"dropped_lines": self._dropped_lines, "dropped_bytes": self._dropped_bytes}
            self._dropped_lines = self._dropped_bytes = 0
            self._log_writer.note(self._program, "warning", message, **marks)


class PipeCapture:
    """Reads one pipe to its end. Owns the descriptor and closes it."""

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
            data = os.read(self._descriptor, CHUNK_BYTES)
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
