"""Requests with long replies: records and file contents, collected within the limits of the request."""

import asyncio
import io
from collections.abc import AsyncIterable, Sequence
from typing import Any

from freehold.computer.library import reply
from freehold.computer.library.channel import Channel
from freehold.computer.library.frames import decode_message, protocol_error
from freehold.computer.library.link import Link
from freehold.computer.library.stream import ChannelStream
from freehold.errors import FreeholdError

WINDOW = 1024 * 1024
MAX_BYTES = 1024 * 1024 * 1024
MAX_ROWS = 1_000_000
_MAX_LINE = 4 * 1024 * 1024
_MAX_RECORDS = 512 * 1024 * 1024


class ItemResult:
    """The reply to one item: its contents and rows, and its final value (`ok`) or error."""

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


class BatchCollector:
    """Receives the replies to a batch. Holds no more than the request asked for, whatever the guest sends."""

    def __init__(self, expected: int, most_bytes: int, most_rows: int, stream: ChannelStream | None = None) -> None:
        self._expected = expected
        self._most_records = _MAX_RECORDS
        self._most_bytes = most_bytes
        self._most_rows = most_rows
        self._stream = stream
        self._content = io.BytesIO()  # getvalue() does not copy the buffer
        self._rows: list[Any] = []
        self._line = b""
        self.outcomes: list[ItemResult] = []
        self.channel: Channel | None = None
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.error: FreeholdError | None = None

    def data(self, stream: int, payload: memoryview) -> None:
        if stream == 0:
            if self._stream is not None:
                self._stream.feed(bytes(payload))
                return
            self._most_bytes -= len(payload)
            if self._most_bytes < 0:
                self._abort(
                    FreeholdError(
                        "files.too-large",
                        "The contents are larger than the limit of this call",
                        hint="Read a range, or use files.stream",
                    )
                )
                return
            self._content.write(payload)
        else:
            self._most_records -= len(payload)
            if self._most_records < 0:
                raise protocol_error("more records than allowed")
            lines = (self._line + bytes(payload)).split(b"\n")
            self._line = lines.pop()
            if len(self._line) > _MAX_LINE:
                raise protocol_error("a record that is too long")
            for line in lines:
                self._record(decode_message(line))
        if self.channel is not None:
            self.channel.grant(stream, len(payload))

    def end(self, stream: int) -> None:
        return

    def message(self, message: dict[str, Any]) -> None:
        self.error = self.error or reply.read_error(message)

    def closed(self) -> None:
        if self._stream is not None:
            failed = self.outcomes[0].error if self.outcomes else protocol_error("contents without a final record")
            self._stream.end(self.error or failed)
        if not self.done.done():
            self.done.set_result(None)

    def lost(self, error: FreeholdError) -> None:
        self.error = error
        self.closed()

    def _record(self, record: dict[str, Any]) -> None:
        if "part" in record:
            self._rows += reply.read_list(record, "part")
            if len(self._rows) > self._most_rows + 1:
                raise protocol_error("more rows than requested")
            return
        error = reply.read_error(record)
        if error is None and "ok" not in record:
            raise protocol_error("a record without part, ok or error")
        if len(self.outcomes) >= self._expected:
            raise protocol_error("more replies than items")
        self.outcomes.append(ItemResult(record.get("ok"), error, self._content.getvalue(), self._rows))
        if self._content.tell():
            self._content = io.BytesIO()
        self._rows = []

    def _abort(self, error: FreeholdError) -> None:
        self.error = error
        if self.channel is not None:
            self.channel.close()
        self.closed()


async def send_batch(
    link: Link,
    request: dict[str, Any],
    expected: int,
    contents: Sequence[bytes] | AsyncIterable[bytes] = (),
    *,
    most_bytes: int = MAX_BYTES,
    most_rows: int = MAX_ROWS,
    counts: bool = True,
) -> list[ItemResult]:
    """Send the request and then `contents`; return exactly `expected` results. `counts` says whether it is use."""
    collector = BatchCollector(expected, most_bytes, most_rows)
    with link.use.hold_or_observe(counts):
        channel = collector.channel = link.open(request, collector, WINDOW, counts=counts)
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
        raise protocol_error(f"{len(collector.outcomes)} replies to {expected} items")
    return collector.outcomes
