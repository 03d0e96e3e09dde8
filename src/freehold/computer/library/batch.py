"""Questions whose answer may be long: records and contents, gathered within what was asked for."""

import asyncio
import io
from collections.abc import AsyncIterable, Sequence
from typing import Any

from freehold.computer import answers
from freehold.computer.channel import Channel
from freehold.computer.frames import decode_message, protocol_error
from freehold.computer.link import Link
from freehold.computer.stream import Stream
from freehold.errors import FreeholdError

WINDOW = 1024 * 1024
MAX_BYTES = 1024 * 1024 * 1024
MAX_ROWS = 1_000_000
_LINE = 4 * 1024 * 1024
_MAX_RECORDS = 512 * 1024 * 1024


class Outcome:
    """One item's answer: its contents and rows, and the last word or the error."""

    __slots__ = ("content", "error", "ok", "rows")

    def __init__(self, ok: Any, error: FreeholdError | None, content: bytes, rows: list[Any]) -> None:
        self.ok = ok
        self.error = error
        self.content = content
        self.rows = rows

    def value(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.ok


class Collector:
    """Receives a batch's answers; bounded by what was asked for, whatever the guest sends."""

    def __init__(self, expected: int, most_bytes: int, most_rows: int, stream: Stream | None = None) -> None:
        self._expected = expected
        self._most_records = _MAX_RECORDS
        self._most_bytes = most_bytes
        self._most_rows = most_rows
        self._stream = stream
        self._content = io.BytesIO()  # gives away its buffer without another copy
        self._rows: list[Any] = []
        self._line = b""
        self.outcomes: list[Outcome] = []
        self.channel: Channel | None = None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.error: FreeholdError | None = None

    def data(self, stream: int, payload: memoryview) -> None:
        if stream == 0:
            if self._stream is not None:
                self._stream.put(bytes(payload))
                return
            self._most_bytes -= len(payload)
            if self._most_bytes < 0:
                self._give_up(
                    FreeholdError(
                        "files.too-large",
                        "The contents are larger than this call takes",
                        hint="Read a range, or use files.stream",
                    )
                )
                return
            self._content.write(payload)
        else:
            self._most_records -= len(payload)
            if self._most_records < 0:
                raise protocol_error("records without end")
            lines = (self._line + bytes(payload)).split(b"\n")
            self._line = lines.pop()
            if len(self._line) > _LINE:
                raise protocol_error("a record without end")
            for line in lines:
                self._record(decode_message(line))
        if self.channel is not None:
            self.channel.grant(stream, len(payload))

    def end(self, stream: int) -> None:
        return

    def message(self, message: dict[str, Any]) -> None:
        self.error = self.error or answers.failure(message)

    def closed(self) -> None:
        if self._stream is not None:
            failed = self.outcomes[0].error if self.outcomes else protocol_error("contents without a last word")
            self._stream.end(self.error or failed)
        if not self.done.done():
            self.done.set_result(None)

    def lost(self, error: FreeholdError) -> None:
        self.error = error
        self.closed()

    def _record(self, record: dict[str, Any]) -> None:
        if "part" in record:
            self._rows += answers.items(record, "part")
            if len(self._rows) > self._most_rows + 1:
                raise protocol_error("more rows than were asked for")
            return
        error = answers.failure(record)
        if error is None and "ok" not in record:
            raise protocol_error("a record that says nothing")
        if len(self.outcomes) >= self._expected:
            raise protocol_error("more answers than questions")
        self.outcomes.append(Outcome(record.get("ok"), error, self._content.getvalue(), self._rows))
        if self._content.tell():
            self._content = io.BytesIO()
        self._rows = []

    def _give_up(self, error: FreeholdError) -> None:
        self.error = error
        if self.channel is not None:
            self.channel.close()
        self.closed()


async def ask(
    link: Link,
    request: dict[str, Any],
    expected: int,
    contents: Sequence[bytes] | AsyncIterable[bytes] = (),
    *,
    most_bytes: int = MAX_BYTES,
    most_rows: int = MAX_ROWS,
) -> list[Outcome]:
    """Send the request, feed it `contents`, and return as many outcomes as expected."""
    collector = Collector(expected, most_bytes, most_rows)
    channel = collector.channel = link.open(request, collector, WINDOW)
    try:
        if isinstance(contents, AsyncIterable):
            async for piece in contents:
                await channel.write(piece)
            channel.send_end()
        else:
            for piece in contents:
                await channel.write(piece)
        await collector.done
    finally:
        channel.close()
    if collector.error is not None:
        raise collector.error
    if len(collector.outcomes) != expected:
        raise protocol_error(f"{len(collector.outcomes)} answers to {expected} questions")
    return collector.outcomes
