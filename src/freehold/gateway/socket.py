"""`/v1/socket`: one connection for each browser, many topics, each resumable from the last number seen.

The client sends {"type": "subscribe", "topic", "after"?}, {"type": "unsubscribe", "topic"} and {"type": "ping"}.
The server answers {"type": "subscribed", "topic", "seq"}, then {"type": "event", "topic", "seq", "data"} for missed
and new messages; {"type": "delta", "topic", "data"} for text that streams and is not stored; {"type": "resync", "topic",
"seq"} when missed messages are no longer stored (list again over HTTP, then continue from seq); {"type": "pong"}; and {"type":
"error", "topic", "code", "message"} for a refused subscription.
"""

import asyncio
import json
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, ValidationError
from starlette.types import Receive, Send
from starlette.websockets import WebSocket

from freehold.gateway.context import RouteContext
from freehold.gateway.inputs import Natural, RequestBody
from freehold.gateway.principal import Principal, missing_scope, principal_of
from freehold.gateway.routing import websocket
from freehold.gateway.topics import EncodedMessage, Topic, Topics

MAX_QUEUED = 1_000
MAX_QUEUED_LENGTH = 32 * 1024 * 1024
"""Characters of all messages that wait for one reader."""
MAX_TOPICS = 100
MAX_MESSAGE_LENGTH = 16 * 1024
TOO_SLOW = 4408
INVALID_MESSAGE = 4400
# Missed messages are sent in batches of this size, each when the one before was sent.
BACKLOG_BATCH = 100


@dataclass(frozen=True)
class SocketClose:
    code: int
    reason: str


CLOSE_TOO_SLOW = SocketClose(TOO_SLOW, "too slow: reconnect and resume from the last number seen")
CLOSE_INVALID_MESSAGE = SocketClose(INVALID_MESSAGE, "not a valid message for this socket")


class SubscribeMessage(RequestBody):
    type: Literal["subscribe"]
    topic: str = Field(max_length=200)
    after: Natural | None = None


class UnsubscribeMessage(RequestBody):
    type: Literal["unsubscribe"]
    topic: str = Field(max_length=200)


class PingMessage(RequestBody):
    type: Literal["ping"]


ClientMessage = Annotated[SubscribeMessage | UnsubscribeMessage | PingMessage, Field(discriminator="type")]
_CLIENT_MESSAGE: TypeAdapter[SubscribeMessage | UnsubscribeMessage | PingMessage] = TypeAdapter(ClientMessage)


class SocketReader:
    """The sending side of one socket: a bounded queue, and the last number sent for each topic."""

    def __init__(self, principal: Principal) -> None:
        self.principal = principal
        self._waiting: deque[str] = deque()
        self._length = 0
        self._wake = asyncio.Event()
        self._taken = asyncio.Event()
        self._sent: dict[str, int] = {}
        self._shortened: dict[str, Callable[[Any], Any]] = {}
        """Topics whose messages this reader gets without the words of conversations."""
        self.too_slow = asyncio.Event()
        self.joined: dict[str, Topic] = {}

    def offer_message(self, topic: str, seq: int, text: str) -> None:
        if seq <= self._sent.get(topic, -1):
            return
        self._sent[topic] = seq
        self.send_text(text if (shorten := self._shortened.get(topic)) is None else _shorten(text, shorten))

    def send_text(self, text: str) -> None:
        if len(self._waiting) >= MAX_QUEUED or self._length >= MAX_QUEUED_LENGTH:
            # The client reconnects and resumes from the last number it saw. Nothing is lost and the queue stays bounded.
            self.too_slow.set()
            self._waiting.clear()
            self._length = 0
        elif not self.too_slow.is_set():
            self._waiting.append(text)
            self._length += len(text)
            self._wake.set()

    def forget(self, topic: str) -> None:
        self._sent.pop(topic, None)
        self._shortened.pop(topic, None)

    def prepare(self, topic: Topic) -> None:
        """Comes before the first message of a topic."""
        self.forget(topic.name)
        if topic.leave_out_words is not None and not self.principal.has_scope("prompt"):
            self._shortened[topic.name] = topic.leave_out_words

    def start_after(self, topic: str, seq: int) -> None:
        self._sent[topic] = max(seq, self._sent.get(topic, -1))

    async def wait_until_sent(self) -> None:
        """Wait until the queue is empty."""
        while self._waiting:
            self._taken.clear()
            await self._taken.wait()

    async def drain(self, send: Send) -> None:
        waiting = self._waiting
        while True:
            await self._wake.wait()
            self._wake.clear()
            while waiting:
                text = waiting.popleft()
                self._length -= len(text)
                await send({"type": "websocket.send", "text": text})
            self._taken.set()


class SocketRoutes:
    def __init__(self, context: RouteContext) -> None:
        self._topics = context.publisher.topics

    @websocket("/v1/socket", scope="read")
    async def socket(self, socket: WebSocket) -> None:
        await socket.accept()
        reader = SocketReader(principal_of(socket.scope))
        # Without the framework's bookkeeping for every message, which costs more than the message itself.
        receive, send = socket._receive, socket._send
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {
                    group.create_task(_ignore_closed(reader.drain(send))),
                    group.create_task(_listen(reader, self._topics, receive)),
                    group.create_task(reader.too_slow.wait()),
                }
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                ended = {task for task in tasks if task.done()}
                for task in tasks - ended:
                    task.cancel()
        finally:
            for topic in reader.joined.values():
                topic.leave(reader)
        closing = CLOSE_TOO_SLOW if reader.too_slow.is_set() else next(iter(ended)).result()
        if isinstance(closing, SocketClose):
            # A client that does not read will not read this either; the server then closes the connection.
            with suppress(TimeoutError, OSError):
                async with asyncio.timeout(1):
                    await socket.close(closing.code, closing.reason)


def _shorten(text: str, leave_out_words: Callable[[Any], Any]) -> str:
    message = json.loads(text)
    return json.dumps({**message, "data": leave_out_words(message["data"])}, separators=(",", ":"))


async def _ignore_closed(sending: Awaitable[None]) -> None:
    with suppress(OSError):
        await sending


async def _listen(reader: SocketReader, topics: Topics, receive: Receive) -> SocketClose | None:
    """Handle messages until the client disconnects (None) or sends an invalid one."""
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return None
        text = message.get("text")
        try:
            parsed = (
                _CLIENT_MESSAGE.validate_json(text) if text is not None and len(text) <= MAX_MESSAGE_LENGTH else None
            )
        except ValidationError:
            parsed = None
        match parsed:
            case None:
                return CLOSE_INVALID_MESSAGE
            case PingMessage():
                reader.send_text('{"type":"pong"}')
            case UnsubscribeMessage(topic=name):
                if (left := reader.joined.pop(name, None)) is not None:
                    left.leave(reader)
                    reader.forget(name)
            case SubscribeMessage():
                await _subscribe(parsed, reader, topics)


async def _subscribe(request: SubscribeMessage, reader: SocketReader, topics: Topics) -> None:
    if request.topic not in reader.joined and len(reader.joined) >= MAX_TOPICS:
        _refuse(
            reader, request.topic, "socket.too-many-topics", f"A socket can subscribe to at most {MAX_TOPICS} topics"
        )
        return
    topic = await topics.find(request.topic)
    if topic is None:
        _refuse(reader, request.topic, "socket.unknown-topic", f"The topics are: {', '.join(topics.list_names())}")
        return
    if not reader.principal.has_scope(topic.scope):
        error = missing_scope(topic.scope)
        _refuse(reader, request.topic, error.code, error.message)
        return
    topic.leave(reader)
    reader.prepare(topic)
    at = topic.last if request.after is None else request.after
    missed = await topic.read_after(at)
    if missed is not None:
        reader.send_text(json.dumps({"type": "subscribed", "topic": topic.name, "seq": at}))
    while True:
        while missed:
            await _send_backlog(reader, topic.name, missed)
            at = missed[-1][0]  # may be ahead of the published number: the durable source is written first
            missed = await topic.read_after(at) if at < topic.last else []
        # No await from here to the end: the next published message finds the reader joined, and none is lost.
        if missed is None:
            at = topic.last
            reader.send_text(json.dumps({"type": "resync", "topic": topic.name, "seq": at}))
        if topics.get(topic.name) is topic:
            break
        # It was removed while it had no reader. What was published since is in the next topic of this name.
        found = await topics.find(topic.name)
        if found is None:
            _refuse(reader, topic.name, "socket.unknown-topic", f"The topics are: {', '.join(topics.list_names())}")
            return
        topic = found
        missed = await topic.read_after(at)
    reader.start_after(topic.name, at)
    topic.join(reader)
    reader.joined[topic.name] = topic


async def _send_backlog(reader: SocketReader, name: str, missed: list[EncodedMessage]) -> None:
    for start in range(0, len(missed), BACKLOG_BATCH):
        await reader.wait_until_sent()
        for seq, text in missed[start : start + BACKLOG_BATCH]:
            reader.offer_message(name, seq, text)


def _refuse(reader: SocketReader, topic: str, code: str, message: str) -> None:
    reader.send_text(json.dumps({"type": "error", "topic": topic, "code": code, "message": message}))
