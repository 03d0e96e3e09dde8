"""Reads the events of one session from the gateway's socket, as a client does."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from websockets.asyncio.client import ClientConnection

Json = dict[str, Any]
REPLY_TIMEOUT = 120.0


class SessionWatch:
    """The events of one session, in order. `answer_request` answers a permission request."""

    def __init__(self, socket: ClientConnection, answer_request: Callable[[str, str], Awaitable[Any]]) -> None:
        self._socket = socket
        self._answer_request = answer_request
        self.events: list[Json] = []
        self.deltas: list[Json] = []

    async def until(self, kind: str, **wanted: Any) -> Json:
        """The next event of this kind whose data has these values."""
        async with asyncio.timeout(REPLY_TIMEOUT):
            while True:
                event = await self.next()
                if event["kind"] == kind and all(event["data"].get(key) == value for key, value in wanted.items()):
                    return event

    async def until_text(self, text: str) -> None:
        """Until the agent has written this, even if the message is not complete."""
        async with asyncio.timeout(REPLY_TIMEOUT):
            while text not in "".join(delta["text"] for delta in self.deltas) + self.text():
                await self._receive()

    async def next(self) -> Json:
        """The next event of any kind."""
        async with asyncio.timeout(REPLY_TIMEOUT):
            while True:
                if (event := await self._receive()) is not None:
                    return event

    async def _receive(self) -> Json | None:
        message = json.loads(await self._socket.recv())
        if message["type"] == "delta":
            self.deltas.append(message["data"])
        elif message["type"] == "event":
            event: Json = message["data"]
            self.events.append(event)
            return event
        return None

    async def answer(self, answer: str) -> Json:
        """Wait for the next permission request and answer it."""
        asked = await self.until("approval", state="pending")
        await self._answer_request(asked["data"]["id"], answer)
        return asked

    async def answer_all(self, answer: str, turn: int | None = None) -> Json:
        """Wait for the end of the turn, this one or the next to end, and answer every permission request until then."""
        while True:
            event = await self.next()
            if event["kind"] == "turn.ended" and turn in (None, event["turn"]):
                return event
            if event["kind"] == "approval" and event["data"]["state"] == "pending":
                await self._answer_request(event["data"]["id"], answer)

    async def until_ended(self, turn: int) -> Json:
        """The end of this turn."""
        while True:
            event = await self.until("turn.ended")
            if event["turn"] == turn:
                return event

    def kinds(self) -> list[str]:
        return [event["kind"] for event in self.events]

    def requests(self) -> list[Json]:
        """The permission requests so far."""
        return [e["data"] for e in self.events if e["kind"] == "approval" and e["data"]["state"] == "pending"]

    def text(self) -> str:
        return "".join(event["data"]["text"] for event in self.events if event["kind"] == "message")
