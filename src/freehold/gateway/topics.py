"""What a socket can subscribe to: numbered messages, sent to every reader, resumable by number."""

import json
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

Encoded = tuple[int, str]


class Reader(Protocol):
    """One subscriber. `offer` never waits: a reader that cannot keep up deals with that itself."""

    def offer(self, topic: str, seq: int, text: str) -> None: ...

    def say(self, text: str) -> None: ...


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

    def pass_on(self, data: Mapping[str, Any]) -> None:
        """Tell those who are here now, unnumbered and unremembered: what streams is not kept, only what it became."""
        if self._readers:
            text = json.dumps({"type": "delta", "topic": self.name, "data": data}, separators=(",", ":"))
            for reader in self._readers:
                reader.say(text)

    def join(self, reader: Reader) -> None:
        self._readers.add(reader)

    def leave(self, reader: Reader) -> None:
        self._readers.discard(reader)

    async def since(self, after: int) -> list[Encoded] | None:
        """The messages after a number, or None when some are no longer remembered. Empty only when there are none."""
        if after > self.last:
            return None
        if after == self.last:
            return []
        if self._kept and self._kept[0][0] <= after + 1:
            return [message for message in self._kept if message[0] > after]
        missed = await self._backlog(after) if self._backlog is not None else None
        return missed or None


class Topics:
    """Every topic by name; those of a family (`session:ID`) come to life when somebody first asks for one."""

    def __init__(self) -> None:
        self._known: dict[str, Topic] = {}
        self._families: dict[str, Callable[[str], Awaitable[Topic | None]]] = {}

    def add(self, topic: Topic) -> Topic:
        self._known[topic.name] = topic
        return topic

    def add_family(self, prefix: str, make: Callable[[str], Awaitable[Topic | None]]) -> None:
        """`make` gets what stands behind `prefix:` and gives its topic, or None when there is no such thing."""
        self._families[prefix] = make

    def remove(self, name: str) -> None:
        self._known.pop(name, None)

    def names(self) -> list[str]:
        return sorted(
            [*(name for name in self._known if ":" not in name), *(f"{prefix}:…" for prefix in self._families)]
        )

    def open(self, name: str) -> Topic | None:
        """The topic if it lives already."""
        return self._known.get(name)

    async def find(self, name: str) -> Topic | None:
        """The topic, brought to life when its family knows it."""
        topic = self._known.get(name)
        prefix, colon, rest = name.partition(":")
        if topic is None and colon and prefix in self._families:
            made = await self._families[prefix](rest)
            topic = None if made is None else self._known.setdefault(name, made)
        return topic
