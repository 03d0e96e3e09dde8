"""The words of unfinished messages: how they are stored, and that no agent can make that expensive."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from tests.agents.test_store import begin_turn
from tests.support.condition import until

from freehold.agents.sessions import unfinished_messages
from freehold.agents.sessions.store import SessionStore
from freehold.agents.sessions.transcript import MAX_TEXT, TranscriptBuilder
from freehold.agents.sessions.unfinished_messages import UnfinishedMessage, UnfinishedMessages
from freehold.agents.sessions.unfinished_store import MessagePart, UnfinishedStore
from freehold.errors import FreeholdError
from freehold.timeline import Timeline


class CountingStore(UnfinishedStore):
    """Remembers what it was given. It refuses as many calls as `failures` says."""

    def __init__(self, timeline: Timeline) -> None:
        super().__init__(timeline)
        self.given: list[Sequence[MessagePart]] = []
        self.failures = 0

    def add(self, parts: Sequence[MessagePart]) -> None:
        if self.failures:
            self.failures -= 1
            raise FreeholdError("timeline.full", "The disk is full")
        self.given.append(parts)
        super().add(parts)


class Writer:
    """An agent that writes in a turn of its session."""

    def __init__(self, store: SessionStore, unfinished: UnfinishedMessages) -> None:
        self.transcript = TranscriptBuilder()
        self.session = begin_turn(store)
        self._message = UnfinishedMessage(self.session, self.transcript)
        self._unfinished = unfinished

    def write(self, text: str, kind: str = "message") -> None:
        content = {"type": "text", "text": text}
        self.transcript.add_update({"sessionUpdate": f"agent_{kind}_chunk", "content": content})
        self._unfinished.note_growth(self._message, 1)

    def part(self) -> MessagePart:
        part = self._message.read_part(1)
        assert part is not None
        return part


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    store = SessionStore(Timeline(tmp_path / "timeline.db"))
    store.prepare()
    store.unfinished = CountingStore(store.timeline)
    return store


@pytest.fixture
def writer(store: SessionStore) -> Writer:
    return Writer(store, UnfinishedMessages(store.unfinished))


def texts_of(store: SessionStore, writer: Writer) -> list[str]:
    return [data["text"] for _, data in store.unfinished.read(writer.session, 1)]


def test_a_part_that_comes_after_its_complete_message_is_not_stored(store: SessionStore, writer: Writer) -> None:
    """It was read before the message was complete, and its thread comes late."""
    writer.write("Hello")
    late = writer.part()
    writer.transcript.finish_message()
    events = writer.transcript.pop_events()
    store.append(writer.session, 1, events, complete=writer.transcript.last_complete)
    store.unfinished.add([late])
    assert texts_of(store, writer) == []


def test_a_complete_message_takes_its_own_parts_away_and_no_others(store: SessionStore, writer: Writer) -> None:
    writer.write("thinking", "thought")
    store.unfinished.add([writer.part()])
    writer.write("saying")
    store.unfinished.add([writer.part()])
    assert texts_of(store, writer) == ["thinking", "saying"]
    events = writer.transcript.pop_events()
    store.append(writer.session, 1, events, complete=writer.transcript.last_complete)
    assert texts_of(store, writer) == ["saying"]


@pytest.mark.parametrize("end", ["ended", "rewound", "deleted"])
def test_nothing_is_kept_of_a_turn_that_has_ended(store: SessionStore, writer: Writer, end: str) -> None:
    writer.write("Hello")
    store.unfinished.add([writer.part()])
    if end == "ended":
        store.append(writer.session, 1, [], ended=True)
    elif end == "rewound":
        store.rewind(writer.session, 1, who="owner")
    else:
        store.delete(writer.session, who="owner")
    writer.write(" again")
    store.unfinished.add([writer.part()])
    assert store.timeline.query("SELECT count(*) FROM agents_unfinished") == [(0,)]


def test_of_two_parts_at_one_place_the_longer_one_stays(store: SessionStore, writer: Writer) -> None:
    """A write that was cancelled may still come, before or after the one that took its place."""
    writer.write("Hel\0")
    early = writer.part()
    writer.write("lo")
    for part in (early, writer.part(), early):
        store.unfinished.add([part])
    assert texts_of(store, writer) == ["Hel\0lo"]


async def test_a_flood_of_pieces_makes_few_writes_and_no_character_is_written_twice(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two agents send far more than a message may have. Both are stored in the same transactions."""
    monkeypatch.setattr(unfinished_messages, "SAVE_INTERVAL", 0.01)
    counting = store.unfinished
    assert isinstance(counting, CountingStore)
    unfinished = UnfinishedMessages(counting)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(unfinished.run())
        for agent in [Writer(store, unfinished), Writer(store, unfinished)]:
            agent.write("first ")
        last = agent
        await until(lambda: texts_of(store, last) == ["first "])
        for _ in range(10_000):
            last.write("x" * 100)
        await until(lambda: len(texts_of(store, last)[0]) > 6)
        running.cancel()
    assert len(texts_of(store, last)[0]) == MAX_TEXT + 1
    assert [len(parts) for parts in counting.given] == [2, 1]
    assert [part.at for parts in counting.given for part in parts if part.session == last.session] == [0, 6]


async def test_what_a_full_disk_refused_is_stored_later_without_a_gap(
    store: SessionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfinished_messages, "SAVE_INTERVAL", 0.01)
    counting = store.unfinished
    assert isinstance(counting, CountingStore)
    counting.failures = 2
    unfinished = UnfinishedMessages(counting)
    writer = Writer(store, unfinished)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(unfinished.run())
        writer.write("Hello")
        await until(lambda: counting.failures == 0)
        writer.write(" you")
        await until(lambda: texts_of(store, writer) == ["Hello you"])
        running.cancel()
