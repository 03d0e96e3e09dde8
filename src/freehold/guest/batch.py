"""Answers that may be long: records on stream 1, contents on stream 0, at the pace of whoever reads them.

Stream 1 carries one line of JSON for each result: {"part": [...]} any number of times, then {"ok": ...} or
{"error": [code, message]}.
"""

from __future__ import annotations

from freehold.guest.codec import encode
from freehold.guest.kernel import deque
from freehold.guest.link import Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from freehold.guest.link import Channel
    from freehold.guest.loop import Loop

    Steps = Generator[bool, None, Any]

SOON = False


class Batch(Operation):
    """One request on one channel, answered by a job that gives way to others and waits where it must."""

    def __init__(self, loop: Loop, channel: Channel) -> None:
        self._loop = loop
        self._channel = channel
        self._inlet: deque[bytes] = deque()
        self._ended = False
        self._waits = False
        self._job = self.answer()
        loop.work(self._job)

    def answer(self) -> Steps:
        raise NotImplementedError

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
            self._loop.work(self._job)

    def _wait(self) -> Steps:
        self._waits = True
        yield True

    def closed(self) -> None:
        self._job.close()

    def record(self, answer: dict[str, Any]) -> Steps:
        line = encode(answer) + b"\n"
        while line:
            room = self._channel.room(1)
            if room <= 0:
                yield from self._wait()
                continue
            self._channel.send(1, line[:room])
            line = line[room:]

    def parts(self, rows: Generator[Any, None, None], most: int) -> Steps:
        """Send rows in lines of some hundred. The answer counts them and tells whether there were more."""
        count = 0
        batch: list[Any] = []
        for row in rows:
            if row is None:
                yield SOON
                continue
            if count >= most:
                rows.close()
                yield from self.record({"part": batch})
                return {"count": count, "more": True}
            batch.append(row)
            count += 1
            if len(batch) == 256:
                yield from self.record({"part": batch})
                batch = []
                yield SOON
        if batch:
            yield from self.record({"part": batch})
        return {"count": count, "more": False}
