"""Operations with long replies: records on stream 1, contents on stream 0, as fast as the host reads them.

Stream 1 carries lines of JSON. Each result is {"part": [...]} any number of times, then {"ok": ...} or
{"error": [code, message]}.
"""

from __future__ import annotations

from freehold.guest.codec import encode_message
from freehold.guest.kernel import deque
from freehold.guest.link import Operation
from freehold.guest.loop import log_error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from freehold.guest.link import GuestChannel
    from freehold.guest.loop import Loop

    Steps = Generator[bool, None, Any]

SOON = False
MAX_ROWS = 256
MAX_RECORD = 1024 * 1024
"""Bytes of one record. The host refuses records of more than four times this."""


class BatchOperation(Operation):
    """One request on one channel. `answer` is a job of the loop that yields to other jobs and waits for credit and input."""

    def __init__(self, loop: Loop, channel: GuestChannel) -> None:
        self._loop = loop
        self._channel = channel
        self._inlet: deque[bytes] = deque()
        self._ended = False
        self._waits = False
        self._job = self._answer_or_fail()
        loop.add_job(self._job)

    def answer(self) -> Steps:
        raise NotImplementedError

    def _answer_or_fail(self) -> Steps:
        """The host always gets a reply: a channel that stays open after an error would make it wait for ever."""
        try:
            yield from self.answer()
        except Exception as error:
            log_error(error)
            self._channel.fail("computer.failed", f"{type(error).__name__}: {error}")

    def data(self, stream: int, payload: bytes) -> None:
        self._inlet.append(payload)
        self._wake()

    def end(self, stream: int) -> None:
        self._ended = True
        self._wake()

    def credited(self) -> None:
        self._wake()

    def _wake(self) -> None:
        if self._waits:
            self._waits = False
            self._loop.add_job(self._job)

    def _wait(self) -> Steps:
        self._waits = True
        yield True

    def closed(self) -> None:
        self._job.close()

    def record(self, answer: dict[str, Any]) -> Steps:
        yield from self._send_line(encode_message(answer))

    def _send_line(self, encoded: bytes) -> Steps:
        line = encoded + b"\n"
        while line:
            room = self._channel.room(1)
            if room <= 0:
                yield from self._wait()
                continue
            self._channel.send(1, line[:room])
            line = line[room:]

    def _send_rows(self, rows: list[Any]) -> Steps:
        """Send rows in one record, or in several: names and targets of links can be long."""
        encoded = encode_message({"part": rows})
        if len(encoded) > MAX_RECORD and len(rows) > 1:
            yield from self._send_rows(rows[: len(rows) // 2])
            yield from self._send_rows(rows[len(rows) // 2 :])
        else:
            yield from self._send_line(encoded)

    def parts(self, rows: Generator[Any, None, None], most: int) -> Steps:
        """Send rows, up to 256 in each record. Returns their count, and whether there were more than `most`."""
        count = 0
        batch: list[Any] = []
        for row in rows:
            if row is None:
                yield SOON
                continue
            if count >= most:
                rows.close()
                yield from self._send_rows(batch)
                return {"count": count, "more": True}
            batch.append(row)
            count += 1
            if len(batch) == MAX_ROWS:
                yield from self._send_rows(batch)
                batch = []
                yield SOON
        if batch:
            yield from self._send_rows(batch)
        return {"count": count, "more": False}
