"""Relays for tests: a client of one, and one that keeps what it is told and answers as a relay may."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from tests.mesh.freeholds import PEER, MeshFreehold
from tests.support.condition import DEADLINE, until
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve

from freehold.mesh.nostr.event import NostrEvent, sign_event
from freehold.mesh.nostr.keys import NostrKey, make_key

RELAY = PEER + "[mesh.relay]\nenabled = true\n"


def relay_url(home: MeshFreehold) -> str:
    return f"ws://localhost:{home.gateway.port}/relay"


class Client:
    """A client that says what it wants and reads what it gets."""

    def __init__(self, socket: ClientConnection, url: str) -> None:
        self._socket = socket
        self._url = url
        self.challenge = ""

    async def send(self, *parts: object) -> None:
        await self._socket.send(json.dumps(parts))

    async def read(self, kind: str) -> list[Any]:
        """The next message of this kind."""
        async with asyncio.timeout(DEADLINE):
            while True:
                message: list[Any] = json.loads(await self._socket.recv())
                if message[0] == "AUTH":
                    self.challenge = message[1]
                if message[0] == kind:
                    return message

    async def authenticate(self, key: NostrKey, **changes: str) -> tuple[bool, str]:
        self.challenge = self.challenge or (await self.read("AUTH"))[1]
        tags = {"relay": self._url, "challenge": self.challenge, **changes}
        event = sign_event(key, 22242, "", list(tags.items()))
        await self.send("AUTH", event.as_json())
        _, _, is_taken, reason = await self.read("OK")
        return is_taken, reason

    async def publish(self, event: NostrEvent | dict[str, Any]) -> tuple[bool, str]:
        await self.send("EVENT", event if isinstance(event, dict) else event.as_json())
        _, _, is_taken, reason = await self.read("OK")
        return is_taken, reason

    async def flood(self, text: str, count: int) -> None:
        for _ in range(count):
            await self._socket.send(text)
        await self.read("NOTHING")

    async def find(self, *filters: dict[str, Any], name: str = "q") -> list[dict[str, Any]]:
        await self.send("REQ", name, *filters)
        found = []
        async with asyncio.timeout(DEADLINE):
            while True:
                message = json.loads(await self._socket.recv())
                if message[0] == "EVENT":
                    found.append(message[2])
                elif message[0] in ("EOSE", "CLOSED"):
                    return found


@asynccontextmanager
async def client_of(home: MeshFreehold, key: NostrKey | None = None) -> AsyncIterator[Client]:
    async with connect(relay_url(home), proxy=None, open_timeout=DEADLINE, max_size=None) as socket:
        client = Client(socket, relay_url(home))
        if key is not None:
            assert await client.authenticate(key) == (True, "")
        yield client


def with_relays(*urls: str, more: str = "") -> str:
    return f'[mesh]\nmode = "peer"\nrelays = {json.dumps(urls)}\n{more}'


async def messages_of(home: MeshFreehold) -> list[str]:
    return [one["content"] for one in await home.ask("GET", "/v1/mesh/messages")]


async def wait_for(home: MeshFreehold, *texts: str) -> None:
    async def is_there() -> bool:
        return sorted(await messages_of(home)) == sorted(texts)

    await until(is_there)


class KeepingRelay:
    """A relay that answers each request with the newest of `kept`, as many as it was asked for, and until when."""

    def __init__(self) -> None:
        self.kept: list[dict[str, Any]] = []
        self.answers = 0

    async def answer(self, socket: ServerConnection) -> None:
        async for text in socket:
            message = json.loads(text)
            if message[0] == "REQ":
                wanted = message[2]
                found = [one for one in self.kept if one["created_at"] <= wanted.get("until", 2**40)]
                found.sort(key=lambda one: -one["created_at"])
                for one in found[: wanted["limit"]]:
                    await socket.send(json.dumps(["EVENT", message[1], one]))
                await socket.send(json.dumps(["EOSE", message[1]]))
                self.answers += 1

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        async with serve(self.answer, "127.0.0.1", 0) as server:
            yield f"ws://127.0.0.1:{next(iter(server.sockets)).getsockname()[1]}"


def junk_for(receiver: str, *moments: int) -> list[dict[str, Any]]:
    """Wraps of a stranger with these dates. What is inside cannot be opened."""
    stranger = make_key()
    return [
        sign_event(stranger, 1059, f"junk {place}", [("p", receiver)], created_at=at).as_json()
        for place, at in enumerate(moments)
    ]
