"""`/v1/socket`: nothing is lost or repeated, and memory stays bounded."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.gateway.running_gateway import RunningGateway, next_message
from tests.support.condition import DEADLINE, until
from websockets.asyncio.client import ClientConnection

from freehold.gateway import socket as socket_module
from freehold.gateway.principal import Principal
from freehold.gateway.socket import MAX_QUEUED, MAX_TOPICS, SocketReader, SubscribeMessage, _subscribe
from freehold.gateway.topics import MAX_KEPT_LENGTH, EncodedMessage, Topic, Topics, encode_message
from freehold.identity.tokens import ApiToken

READER = Principal(token=ApiToken("1", "reader", frozenset({"read"}), None, 0.0, None, None))


async def subscribe(socket: ClientConnection, topic: str, after: int | None = None) -> None:
    word: dict[str, Any] = {"type": "subscribe", "topic": topic}
    await socket.send(json.dumps(word if after is None else {**word, "after": after}))


async def test_a_subscriber_gets_new_events(gateway: RunningGateway) -> None:
    async with gateway.socket(gateway.token("read")) as socket:
        await subscribe(socket, "timeline")
        seen = await next_message(socket, "subscribed")
        event = await asyncio.to_thread(
            gateway.services.timeline.append, "test.happened", {"what": "this"}, who="owner"
        )
        message = await next_message(socket, "event")
        assert message["topic"] == "timeline"
        assert message["seq"] > seen["seq"]
        while message["seq"] < event.seq:
            message = await next_message(socket, "event")
        assert (message["data"]["kind"], message["data"]["data"]) == ("test.happened", {"what": "this"})


async def test_a_reader_resumes_from_the_durable_record(gateway: RunningGateway) -> None:
    """Events from before the start of the gateway are only in the timeline."""
    for number in range(5):
        await asyncio.to_thread(gateway.services.timeline.append, "test.counted", {"number": number}, who="owner")
    async with gateway.socket(gateway.token("read")) as socket:
        await subscribe(socket, "timeline", after=0)
        seen = [await next_message(socket, "event") for _ in range(5)]
    assert [message["seq"] for message in seen] == list(range(1, len(seen) + 1))


async def test_a_number_from_the_future_means_resync(gateway: RunningGateway) -> None:
    async with gateway.socket(gateway.token("read")) as socket:
        await subscribe(socket, "files", after=7_000)
        assert (await next_message(socket, "resync"))["seq"] == gateway.publisher.files.last
        gateway.publisher.files.publish({"path": "x"})
        assert (await next_message(socket, "event"))["data"] == {"path": "x"}


async def test_messages_that_are_no_longer_stored_mean_resync(gateway: RunningGateway) -> None:
    gateway.publisher.topics.add(short := Topic("short", kept=3))
    for number in range(10):
        short.publish({"number": number})
    async with gateway.socket(gateway.token("read")) as socket:
        await subscribe(socket, "short", after=6)
        assert await next_message(socket, "resync") == {"type": "resync", "topic": "short", "seq": 10}
        await subscribe(socket, "short", after=7)
        assert [(await next_message(socket, "event"))["seq"] for _ in range(3)] == [8, 9, 10]


async def test_a_topic_does_not_grow_with_the_length_of_its_messages(gateway: RunningGateway) -> None:
    """A change of many files is a long message. A reader that misses one that is no longer stored is told."""
    gateway.publisher.topics.add(topic := Topic("wide"))
    long = "x" * (MAX_KEPT_LENGTH // 4)
    for _ in range(20):
        topic.publish({"paths": long})
    assert sum(len(text) for _, text in topic._kept) <= MAX_KEPT_LENGTH
    async with gateway.socket(gateway.token("read")) as socket:
        await subscribe(socket, "wide", after=18)
        assert [(await next_message(socket, "event"))["seq"] for _ in range(2)] == [19, 20]
        await subscribe(socket, "wide", after=10)
        assert (await next_message(socket, "resync"))["seq"] == 20


async def test_a_backlog_longer_than_the_queue_is_sent_in_batches(gateway: RunningGateway) -> None:
    """The backlog is sent as fast as it is read, so that the reader is not dropped as too slow."""
    gateway.publisher.topics.add(long := Topic("long", kept=5 * MAX_QUEUED))
    for number in range(3 * MAX_QUEUED):
        long.publish({"number": number})
    async with gateway.socket(gateway.token("read")) as socket:
        await subscribe(socket, "long", after=0)
        for seq in range(1, 3 * MAX_QUEUED + 1):
            assert (await next_message(socket, "event"))["seq"] == seq


async def test_a_slow_reader_is_dropped_and_loses_nothing(gateway: RunningGateway) -> None:
    """It is told to reconnect, and then gets the rest."""
    topic = gateway.publisher.topics.add(Topic("busy", kept=10 * MAX_QUEUED))
    headers = gateway.token("read")
    async with gateway.socket(headers) as socket:
        await subscribe(socket, "busy")
        await next_message(socket, "subscribed")
        for number in range(MAX_QUEUED + 1):  # faster than anybody could read: the loop is not given away once
            topic.publish({"number": number})
        await socket.wait_closed()
        assert socket.close_code == socket_module.TOO_SLOW
    assert topic.readers == 0
    async with gateway.socket(headers) as socket:
        await subscribe(socket, "busy", after=0)
        assert [(await next_message(socket, "event"))["seq"] for _ in range(MAX_QUEUED + 1)] == list(
            range(1, MAX_QUEUED + 2)
        )


async def test_a_slow_reader_is_dropped_when_its_messages_are_long(
    gateway: RunningGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand of them were a gigabyte, for each reader."""
    monkeypatch.setattr(socket_module, "MAX_QUEUED_LENGTH", 10_000)
    topic = gateway.publisher.topics.add(Topic("long", kept=100))
    async with gateway.socket(gateway.token("read")) as socket:
        await subscribe(socket, "long")
        await next_message(socket, "subscribed")
        for _ in range(3):
            topic.publish({"text": "x" * 9_000})  # one after the other all of them fit
            await next_message(socket, "event")
        for _ in range(3):
            topic.publish({"text": "x" * 9_000})  # the loop is not given away once
        await socket.wait_closed()
        assert socket.close_code == socket_module.TOO_SLOW


async def test_deltas_are_sent_and_not_stored(gateway: RunningGateway) -> None:
    topic = gateway.publisher.topics.add(Topic("session:1"))
    async with gateway.socket(gateway.token("read")) as socket:
        await subscribe(socket, "session:1")
        await next_message(socket, "subscribed")
        topic.publish_delta({"text": "Hel"})
        assert (await next_message(socket, "delta"))["data"] == {"text": "Hel"}
        assert topic.last == 0


async def test_an_unsubscribed_reader_gets_no_more_messages(gateway: RunningGateway) -> None:
    async with gateway.socket(gateway.token("read")) as socket:
        await subscribe(socket, "files")
        await next_message(socket, "subscribed")
        await socket.send('{"type": "unsubscribe", "topic": "files"}')
        await socket.send('{"type": "ping"}')
        await next_message(socket, "pong")
        assert gateway.publisher.files.readers == 0
        gateway.publisher.files.publish({"path": "x"})
        await socket.send('{"type": "ping"}')
        assert json.loads(await socket.recv()) == {"type": "pong"}


async def test_topics_are_limited_and_an_unknown_topic_is_an_error(gateway: RunningGateway) -> None:
    for number in range(MAX_TOPICS + 1):
        gateway.publisher.topics.add(Topic(f"many:{number}"))
    async with gateway.socket(gateway.token("read")) as socket:
        await subscribe(socket, "nothing")
        refused = await next_message(socket, "error")
        assert (refused["topic"], refused["code"]) == ("nothing", "socket.unknown-topic")
        assert "timeline" in refused["message"]
        for number in range(MAX_TOPICS + 1):
            await subscribe(socket, f"many:{number}")
        assert (await next_message(socket, "error"))["code"] == "socket.too-many-topics"
        await subscribe(socket, "many:3")  # one that it has already is not one more
        assert (await next_message(socket, "subscribed"))["topic"] == "many:3"


@pytest.mark.parametrize(
    "words",
    [
        "not json",
        "{}",
        '{"type": "shout"}',
        '{"type": "subscribe"}',
        '{"type": "subscribe", "topic": "files", "after": -1}',
        '{"type": "subscribe", "topic": "files", "extra": 1}',
        '{"type": "subscribe", "topic": "' + "x" * 201 + '"}',
        '{"type": "ping"' + " " * 20_000 + "}",
        b"\x00\x01",
    ],
    ids=lambda words: str(words)[:30],
)
async def test_an_invalid_message_closes_the_socket(gateway: RunningGateway, words: str | bytes) -> None:
    async with gateway.socket(gateway.token("read")) as socket:
        await socket.send(words)
        await socket.wait_closed()
        assert socket.close_code == socket_module.INVALID_MESSAGE


async def test_a_message_over_the_size_limit_closes_the_socket(gateway: RunningGateway) -> None:
    async with gateway.socket(gateway.token("read")) as socket:
        await socket.send("x" * 100_000)
        await socket.wait_closed()
        assert socket.close_code == 1009


async def test_a_socket_answers_pings_in_both_directions(gateway: RunningGateway) -> None:
    """The server pings (as configured); the client may ask with a word of its own, as browsers cannot ping."""
    async with gateway.socket(gateway.token("read")) as socket:
        async with asyncio.timeout(DEADLINE):
            await (await socket.ping())
        await socket.send('{"type": "ping"}')
        assert await next_message(socket, "pong") == {"type": "pong"}


async def test_a_disconnected_reader_is_removed(gateway: RunningGateway) -> None:
    async with gateway.socket(gateway.token("read")) as socket:
        await subscribe(socket, "files")
        await next_message(socket, "subscribed")
        assert gateway.publisher.files.readers == 1
        assert len(gateway.services.connections) == 1
    await until(lambda: not gateway.publisher.files.readers and not len(gateway.services.connections))


# Resuming against a model: whatever happens between, each reader has each number once and in order.


class QueueReader:
    """Reads the queue of one socket at its own speed."""

    def __init__(self) -> None:
        self.reader = SocketReader(READER)
        self.seen: list[int] = []
        self.resynced = False

    async def send(self, message: Any) -> None:
        content = json.loads(message["text"])
        if content["type"] == "event":
            self.seen.append(content["seq"])
        if content["type"] == "resync":
            self.resynced = True
            self.seen = []
        await asyncio.sleep(0)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=st.integers(0, 30),
    kept=st.integers(1, 20),
    after=st.integers(0, 40),
    durable=st.booleans(),
    ahead=st.integers(0, 3),
    bursts=st.lists(st.integers(0, 5), max_size=12),
)
def test_resuming_loses_and_repeats_nothing(
    before: int, kept: int, after: int, durable: bool, ahead: int, bursts: list[int]
) -> None:
    """While messages are published, with any number stored, and with a durable source that may be ahead."""

    async def scenario() -> None:
        record: list[EncodedMessage] = []

        def write(seq: int) -> EncodedMessage:
            while len(record) < seq:
                number = len(record) + 1
                record.append((number, encode_message("t", number, {"number": number})))
            return record[seq - 1]

        async def backlog(start: int) -> list[EncodedMessage] | None:
            await asyncio.sleep(0)
            return record[start:]

        topic = Topic("t", kept=kept, backlog=backlog if durable else None)
        topics = Topics()
        topics.add(topic)

        def publish() -> None:
            seq = topic.last + 1
            write(seq + (ahead if durable else 0))
            topic.publish({"number": seq}, seq)

        for _ in range(before):
            publish()
        listener = QueueReader()
        drain = asyncio.create_task(listener.reader.drain(listener.send))
        asking = asyncio.create_task(
            _subscribe(SubscribeMessage(type="subscribe", topic="t", after=after), listener.reader, topics)
        )
        for burst in bursts:
            for _ in range(burst):
                publish()
            await asyncio.sleep(0)
        await asking
        publish()
        await listener.reader.wait_until_sent()
        for _ in range(3):
            await asyncio.sleep(0)
        drain.cancel()
        await asyncio.gather(drain, return_exceptions=True)
        first = listener.seen[0]
        assert listener.seen == list(range(first, first + len(listener.seen)))
        assert listener.seen[-1] >= topic.last
        if not listener.resynced:
            assert first == after + 1

    asyncio.run(scenario())


async def test_a_topic_that_is_removed_while_a_reader_subscribes_loses_nothing() -> None:
    """A session's topic without readers is removed at its next event, and one who is just subscribing must get it."""
    record: list[EncodedMessage] = [(1, encode_message("t:1", 1, {}))]
    topics = Topics()

    def add_event() -> None:
        record.append((len(record) + 1, encode_message("t:1", len(record) + 1, {})))

    async def backlog(start: int) -> list[EncodedMessage] | None:
        found = record[start:]
        if len(record) == 1:  # it happens while the backlog is read
            add_event()
            topics.remove("t:1")
        return found

    async def make(_name: str) -> Topic | None:
        return Topic("t:1", first=len(record), backlog=backlog)

    topics.add_family("t", make)
    listener = QueueReader()
    drain = asyncio.create_task(listener.reader.drain(listener.send))
    await _subscribe(SubscribeMessage(type="subscribe", topic="t:1", after=0), listener.reader, topics)
    joined = topics.get("t:1")
    assert joined is not None
    assert joined.readers == 1
    joined.publish({}, 3)
    await listener.reader.wait_until_sent()
    await until(lambda: listener.seen == [1, 2, 3])
    drain.cancel()
    await asyncio.gather(drain, return_exceptions=True)
