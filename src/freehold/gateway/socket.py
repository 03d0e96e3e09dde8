"""`/v1/socket`: one connection a browser, many topics, each resumable from the last number seen.

The client sends {"type": "subscribe", "topic", "after"?}, {"type": "unsubscribe", "topic"} and {"type": "ping"}.
The server answers {"type": "subscribed", "topic", "seq"}, then {"type": "event", "topic", "seq", "data"} for what was
missed and what comes; {"type": "delta", "topic", "data"} for what streams and is not kept; {"type": "resync", "topic",
"seq"} when more was missed than is remembered (list anew, then go on from seq); {"type": "pong"}; and {"type":
"error", "topic", "code", "message"} for a subscription that is refused.
"""

import asyncio
import json
from collections import deque
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Literal

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from starlette.routing import WebSocketRoute
from starlette.types import Receive, Send
from starlette.websockets import WebSocket

from freehold.gateway.needs import needs
from freehold.gateway.topics import Encoded, Topic, Topics

MAX_WAITING = 1_000
MAX_TOPICS = 100
MAX_TEXT = 16 * 1024
TOO_SLOW = 4408
WRONG_WORDS = 4400
# What was missed is handed over in pieces of this many, as fast as the reader takes them.
PIECE = 100


@dataclass(frozen=True)
class Closing:
    code: int
    reason: str


CLOSE_TOO_SLOW = Closing(TOO_SLOW, "too slow: reconnect and resume from the last number seen")
CLOSE_WRONG_WORDS = Closing(WRONG_WORDS, "not a message this socket knows")


class Subscribe(BaseModel):
    model_config = ConfigDict(extra="forbid")
    type: Literal["subscribe"]
    topic: str = Field(max_length=200)
    after: int | None = Field(default=None, ge=0)


class Unsubscribe(BaseModel):
    model_config = ConfigDict(extra="forbid")
    type: Literal["unsubscribe"]
    topic: str = Field(max_length=200)


class Ping(BaseModel):
    model_config = ConfigDict(extra="forbid")
    type: Literal["ping"]


Word = Annotated[Subscribe | Unsubscribe | Ping, Field(discriminator="type")]
_WORDS: TypeAdapter[Subscribe | Unsubscribe | Ping] = TypeAdapter(Word)


class SocketReader:
    """The sending half of one socket: a bounded queue and what was last put into it for each topic."""

    def __init__(self) -> None:
        self._waiting: deque[str] = deque()
        self._wake = asyncio.Event()
        self._taken = asyncio.Event()
        self._sent: dict[str, int] = {}
        self.too_slow = asyncio.Event()
        self.joined: dict[str, Topic] = {}

    def offer(self, topic: str, seq: int, text: str) -> None:
        if seq <= self._sent.get(topic, -1):
            return
        self._sent[topic] = seq
        self.say(text)

    def say(self, text: str) -> None:
        if len(self._waiting) >= MAX_WAITING:
            # It will come back and resume from the last number it saw; nothing is lost, and nothing grows here.
            self.too_slow.set()
            self._waiting.clear()
        elif not self.too_slow.is_set():
            self._waiting.append(text)
            self._wake.set()

    def forget(self, topic: str) -> None:
        self._sent.pop(topic, None)

    def start_after(self, topic: str, seq: int) -> None:
        self._sent[topic] = max(seq, self._sent.get(topic, -1))

    async def taken(self) -> None:
        """Wait until everything said so far has been taken."""
        while self._waiting:
            self._taken.clear()
            await self._taken.wait()

    async def drain(self, send: Send) -> None:
        waiting = self._waiting
        while True:
            await self._wake.wait()
            self._wake.clear()
            while waiting:
                await send({"type": "websocket.send", "text": waiting.popleft()})
            self._taken.set()


def add_socket(app: FastAPI, topics: Topics) -> None:
    @needs("read")
    async def socket(websocket: WebSocket) -> None:
        await websocket.accept()
        reader = SocketReader()
        # Past the framework's own bookkeeping for every message, which costs more than the message.
        receive, send = websocket._receive, websocket._send
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {
                    group.create_task(_until_gone(reader.drain(send))),
                    group.create_task(_listen(reader, topics, receive)),
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
        if isinstance(closing, Closing):
            # One that reads nothing does not read this either; the server then just hangs up.
            with suppress(TimeoutError, OSError):
                async with asyncio.timeout(1):
                    await websocket.close(closing.code, closing.reason)

    app.router.routes.append(WebSocketRoute("/v1/socket", socket))


async def _until_gone(sending: Awaitable[None]) -> None:
    with suppress(OSError):
        await sending


async def _listen(reader: SocketReader, topics: Topics, receive: Receive) -> Closing | None:
    """Until the other side leaves (None) or says what cannot be understood."""
    while True:
        message = await receive()
        if message["type"] == "websocket.disconnect":
            return None
        text = message.get("text")
        try:
            word = _WORDS.validate_json(text) if text is not None and len(text) <= MAX_TEXT else None
        except ValidationError:
            word = None
        match word:
            case None:
                return CLOSE_WRONG_WORDS
            case Ping():
                reader.say('{"type":"pong"}')
            case Unsubscribe(topic=name):
                if (left := reader.joined.pop(name, None)) is not None:
                    left.leave(reader)
                    reader.forget(name)
            case Subscribe():
                await _subscribe(word, reader, topics)


async def _subscribe(word: Subscribe, reader: SocketReader, topics: Topics) -> None:
    if word.topic not in reader.joined and len(reader.joined) >= MAX_TOPICS:
        _refuse(reader, word.topic, "socket.too-many-topics", f"A socket takes at most {MAX_TOPICS} topics")
        return
    topic = await topics.find(word.topic)
    if topic is None:
        _refuse(reader, word.topic, "socket.unknown-topic", f"The topics are: {', '.join(topics.names())}")
        return
    topic.leave(reader)
    reader.forget(topic.name)
    at = topic.last if word.after is None else word.after
    missed = await topic.since(at)
    if missed is not None:
        reader.say(json.dumps({"type": "subscribed", "topic": topic.name, "seq": at}))
    while missed:
        await _hand_over(reader, topic.name, missed)
        at = missed[-1][0]  # may be ahead of what was published: the record is written first
        missed = await topic.since(at) if at < topic.last else []
    # No await from here on: what is published next finds the reader joined, and nothing between is lost or doubled.
    if missed is None:
        at = topic.last
        reader.say(json.dumps({"type": "resync", "topic": topic.name, "seq": at}))
    reader.start_after(topic.name, at)
    topic.join(reader)
    reader.joined[topic.name] = topic


async def _hand_over(reader: SocketReader, name: str, missed: list[Encoded]) -> None:
    for start in range(0, len(missed), PIECE):
        await reader.taken()
        for seq, text in missed[start : start + PIECE]:
            reader.offer(name, seq, text)


def _refuse(reader: SocketReader, topic: str, code: str, message: str) -> None:
    reader.say(json.dumps({"type": "error", "topic": topic, "code": code, "message": message}))
