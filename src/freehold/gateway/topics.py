"""What a socket can subscribe to: numbered messages, sent to every reader, resumable by number."""

import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

Encoded = tuple[int, str]


class Reader(Protocol):
    """One subscriber. `offer` never waits: a reader that cannot keep up deals with that itself."""

    def offer(self, topic: str, seq: int, text: str) -> None: ...


def encode_message(topic: str, seq: int, data: object) -> str:
    """The text every reader of a message gets: encoded once, however many there are."""
    return json.dumps({"type": "event", "topic": topic, "seq": seq, "data": data}, separators=(",", ":"))


class Topic:
    """Messages numbered from 1 with the last `kept` remembered; or, with `backlog`, numbered by a durable source.

    A reader that asks for more than is remembered is told to list anew.
    """

    def __init__(
        self,
        name: str,
        *,
        kept: int = 1_000,
        first: int = 0,
        backlog: Callable[[int], Awaitable[list[Encoded] | None]] | None = None,
    ) -> None:
        self.name = name
        self.last = first
        self._kept: deque[Encoded] = deque(maxlen=kept)
        self._backlog = backlog
        self._readers: set[Reader] = set()

    @property
    def readers(self) -> int:
        return len(self._readers)

    def publish(self, data: Mapping[str, Any] | list[Any], seq: int | None = None) -> int:
        """Number a message, remember it and offer it to every reader."""
        self.last = self.last + 1 if seq is None else seq
        text = encode_message(self.name, self.last, data)
        self._kept.append((self.last, text))
        for reader in self._readers:
            reader.offer(self.name, self.last, text)
        return self.last

    def join(self, reader: Reader) -> None:
        self._readers.add(reader)

    def leave(self, reader: Reader) -> None:
        self._readers.discard(reader)

    async def since(self, after: int) -> list[Encoded] | None:
        """The messages after a number, or None when some are no longer remembered."""
        if after > self.last:
            return None
        if after == self.last:
            return []
        if self._kept and self._kept[0][0] <= after + 1:
            return [message for message in self._kept if message[0] > after]
        return await self._backlog(after) if self._backlog is not None else None
