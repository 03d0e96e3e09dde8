"""`/v1/socket`: one connection a browser, many topics, each resumable from the last number seen.

The client sends {"type": "subscribe", "topic", "after"?}, {"type": "unsubscribe", "topic"} and {"type": "ping"}.
The server answers {"type": "subscribed", "topic", "seq"}, {"type": "event", "topic", "seq", "data"},
{"type": "resync", "topic", "seq"} (list anew, then go on from seq), {"type": "pong"} and {"type": "error", …}.
"""

import asyncio
import json
from collections import deque
from typing import Annotated, Literal

from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from freehold.gateway.needs import needs
from freehold.gateway.topics import Topic, Topics

MOST_WAITING = 1_000
MOST_TOPICS = 100
MOST_TEXT = 16 * 1024
TOO_SLOW = 4408
WRONG_WORDS = 4400


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
        self._sent: dict[str, int] = {}
        self.too_slow = False
        self.joined: dict[str, Topic] = {}

    def offer(self, topic: str, seq: int, text: str) -> None:
        if seq <= self._sent.get(topic, -1):
            return
        self._sent[topic] = seq
        self.say(text)

    def say(self, text: str) -> None:
        if len(self._waiting) >= MOST_WAITING:
            # It will come back and resume from the last number it saw; nothing is lost, and nothing grows here.
            self.too_slow = True
            self._waiting.clear()
        elif not self.too_slow:
            self._waiting.append(text)
        self._wake.set()

    def forget(self, topic: str) -> None:
        self._sent.pop(topic, None)

    def start_after(self, topic: str, seq: int) -> None:
        self._sent[topic] = max(seq, self._sent.get(topic, -1))

    async def drain(self, socket: WebSocket) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                await socket.send({"type": "websocket.send", "text": self._waiting.popleft()})
            if self.too_slow:
                await socket.close(TOO_SLOW, "too slow: reconnect and resume from the last number seen")
                return


def add_socket(app: FastAPI, topics: Topics) -> None:
    @needs("read")
    async def socket(websocket: WebSocket) -> None:
        await websocket.accept()
        reader = SocketReader()
        try:
            async with asyncio.TaskGroup() as group:
                drain = group.create_task(reader.drain(websocket))
                listen = group.create_task(_listen(websocket, reader, topics))
                await asyncio.wait({drain, listen}, return_when=asyncio.FIRST_COMPLETED)
                drain.cancel()
                listen.cancel()
        except* WebSocketDisconnect:
            pass
        finally:
            for topic in reader.joined.values():
                topic.leave(reader)

    app.router.routes.append(WebSocketRoute("/v1/socket", socket))


async def _listen(websocket: WebSocket, reader: SocketReader, topics: Topics) -> None:
    while True:
        message = await websocket.receive()
        if message["type"] == "websocket.disconnect":
            return
        text = message.get("text")
        try:
            word = _WORDS.validate_json(text) if text is not None and len(text) <= MOST_TEXT else None
        except ValidationError:
            word = None
        if word is None:
            await websocket.close(WRONG_WORDS, "not a message this socket knows")
            return
        match word:
            case Ping():
                reader.say('{"type":"pong"}')
            case Unsubscribe(topic=name):
                if (left := reader.joined.pop(name, None)) is not None:
                    left.leave(reader)
                    reader.forget(name)
            case Subscribe():
                await _subscribe(word, reader, topics)


async def _subscribe(word: Subscribe, reader: SocketReader, topics: Topics) -> None:
    topic = await topics.find(word.topic) if len(reader.joined) < MOST_TOPICS else None
    if topic is None:
        names = ", ".join(topics.names())
        reader.say(json.dumps({"type": "error", "code": "socket.unknown-topic", "message": f"The topics are: {names}"}))
        return
    topic.leave(reader)
    reader.forget(topic.name)
    after = topic.last if word.after is None else word.after
    missed = await topic.since(after)
    # No await from here on: what is published next finds the reader joined, and nothing between is lost or doubled.
    while missed and missed[-1][0] < topic.last:
        after = missed[-1][0]
        _offer(reader, topic.name, missed)
        missed = await topic.since(after)
    if missed is None:
        reader.start_after(topic.name, topic.last)
        reader.say(json.dumps({"type": "resync", "topic": topic.name, "seq": topic.last}))
    else:
        reader.say(json.dumps({"type": "subscribed", "topic": topic.name, "seq": after}))
        _offer(reader, topic.name, missed)
        reader.start_after(topic.name, topic.last)
    topic.join(reader)
    reader.joined[topic.name] = topic


def _offer(reader: SocketReader, name: str, missed: list[tuple[int, str]]) -> None:
    for seq, text in missed:
        reader.offer(name, seq, text)
