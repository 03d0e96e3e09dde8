"""Topics of the socket: numbered messages for every reader, resumable from a number."""

import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from freehold.gateway.route_scope import RouteScope

EncodedMessage = tuple[int, str]

MAX_KEPT_LENGTH = 256 * 1024
"""Characters of all messages that a topic stores for readers that come back, whatever their number."""


class TopicReader(Protocol):
    """One subscriber. No method waits: a reader that is too slow handles that itself."""

    def offer_message(self, topic: str, seq: int, text: str) -> None: ...

    def send_text(self, text: str) -> None: ...


def encode_message(topic: str, seq: int, data: object) -> str:
    """The text of a message. It is encoded once for all readers."""
    return json.dumps({"type": "event", "topic": topic, "seq": seq, "data": data}, separators=(",", ":"))


class Topic:
    """Messages numbered from 1, of which the last `kept` are stored, or fewer if they are long.

    With `backlog` they are numbered by a durable source.

    A reader that asks for older messages than these is told to resync. A reader without the scope may not subscribe.
    `leave_out_words` makes the data that a reader gets who may not read conversations.
    """

    def __init__(
        self,
        name: str,
        *,
        scope: RouteScope = "read",
        kept: int = 1_000,
        first: int = 0,
        backlog: Callable[[int], Awaitable[list[EncodedMessage] | None]] | None = None,
        leave_out_words: Callable[[Any], Any] | None = None,
    ) -> None:
        self.name = name
        self.scope = scope
        self.leave_out_words = leave_out_words
        self.last = first
        self._most_kept = kept
        self._kept: deque[EncodedMessage] = deque()
        self._kept_length = 0
        self._backlog = backlog
        self._readers: set[TopicReader] = set()

    @property
    def readers(self) -> int:
        return len(self._readers)

    def publish(self, data: Mapping[str, Any] | list[Any], seq: int | None = None) -> int:
        """Number a message, store it and offer it to every reader. Returns its number."""
        self.last = self.last + 1 if seq is None else seq
        text = encode_message(self.name, self.last, data)
        self._keep(text)
        for reader in self._readers:
            reader.offer_message(self.name, self.last, text)
        return self.last

    def _keep(self, text: str) -> None:
        self._kept.append((self.last, text))
        self._kept_length += len(text)
        while len(self._kept) > self._most_kept or (self._kept_length > MAX_KEPT_LENGTH and len(self._kept) > 1):
            self._kept_length -= len(self._kept.popleft()[1])

    def publish_delta(self, data: Mapping[str, Any]) -> None:
        """Send to the current readers without number and without storing: for text that is still streaming."""
        if self._readers:
            text = json.dumps({"type": "delta", "topic": self.name, "data": data}, separators=(",", ":"))
            for reader in self._readers:
                reader.send_text(text)

    def join(self, reader: TopicReader) -> None:
        self._readers.add(reader)

    def leave(self, reader: TopicReader) -> None:
        self._readers.discard(reader)

    async def read_after(self, after: int) -> list[EncodedMessage] | None:
        """The messages after a number; None when some of them are no longer stored."""
        if after > self.last:
            return None
        if after == self.last:
            return []
        if self._kept and self._kept[0][0] <= after + 1:
            return [message for message in self._kept if message[0] > after]
        missed = await self._backlog(after) if self._backlog is not None else None
        return missed or None


class Topics:
    """Every topic by name. Topics of a family (`session:ID`) are made when they are first asked for."""

    def __init__(self) -> None:
        self._known: dict[str, Topic] = {}
        self._families: dict[str, Callable[[str], Awaitable[Topic | None]]] = {}

    def add(self, topic: Topic) -> Topic:
        self._known[topic.name] = topic
        return topic

    def add_family(self, prefix: str, make: Callable[[str], Awaitable[Topic | None]]) -> None:
        """`make` gets the part after `prefix:` and returns its topic, or None when it does not exist."""
        self._families[prefix] = make

    def remove(self, name: str) -> None:
        self._known.pop(name, None)

    def list_names(self) -> list[str]:
        return sorted(
            [*(name for name in self._known if ":" not in name), *(f"{prefix}:…" for prefix in self._families)]
        )

    def get(self, name: str) -> Topic | None:
        """The topic if it exists already."""
        return self._known.get(name)

    async def find(self, name: str) -> Topic | None:
        """The topic; made when its family knows the name."""
        topic = self._known.get(name)
        prefix, colon, rest = name.partition(":")
        if topic is None and colon and prefix in self._families:
            made = await self._families[prefix](rest)
            topic = None if made is None else self._known.setdefault(name, made)
        return topic
