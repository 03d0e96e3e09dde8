"""The owner's Nostr client: nostr-sdk makes and opens the messages, and any relay passes them on."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import nostr_sdk as sdk
from tests.support.condition import DEADLINE, until
from websockets.asyncio.client import ClientConnection, connect


@asynccontextmanager
async def sdk_relay(port: int = 0, *, is_open: bool = False) -> AsyncIterator[str]:
    """A relay of nostr-sdk, which asks everybody to authenticate unless it is open."""
    sdk.nostr_sdk.uniffi_set_event_loop(asyncio.get_running_loop())
    limit = sdk.RateLimit(max_reqs=500, notes_per_minute=100_000)
    nip42 = sdk.LocalRelayBuilderNip42(mode=sdk.LocalRelayBuilderNip42Mode.BOTH)
    builder = sdk.LocalRelayBuilder().addr("127.0.0.1").rate_limit(limit)
    builder = builder if is_open else builder.nip42(nip42)
    relay = (builder.port(port) if port else builder).build()
    await relay.run()
    try:
        yield str(await relay.url()).rstrip("/")
    finally:
        relay.shutdown()


@dataclass(frozen=True)
class ReadMessage:
    id: str
    sender: str
    text: str
    reply_to: str | None


def id_of(rumor: sdk.UnsignedEvent) -> str:
    found = rumor.id()
    assert found is not None
    return str(found.to_hex())


class NostrPhone:
    """Writes to one Freehold (`to`, an npub) and reads everything that is for its own key."""

    def __init__(self, keys: sdk.Keys | None = None) -> None:
        self.keys = keys or sdk.Keys.generate()
        self.read: list[ReadMessage] = []
        self.to = ""
        self._socket: ClientConnection | None = None
        self._answers: dict[str, asyncio.Future[tuple[bool, str]]] = {}
        self._ready = asyncio.Event()
        self._url = ""

    @property
    def npub(self) -> str:
        return str(self.keys.public_key().to_bech32())

    @property
    def public(self) -> str:
        return str(self.keys.public_key().to_hex())

    def texts(self) -> list[str]:
        return [one.text for one in self.read]

    async def hears(self, part: str) -> ReadMessage:
        """The last message with this text, as soon as there is one."""
        await until(lambda: any(part in one.text for one in self.read))
        return next(one for one in reversed(self.read) if part in one.text)

    @asynccontextmanager
    async def connected(self, url: str) -> AsyncIterator["NostrPhone"]:
        async with (
            connect(url, proxy=None, open_timeout=DEADLINE, max_size=None) as socket,
            asyncio.TaskGroup() as group,
        ):
            self._socket, self._url = socket, url
            self._ready.clear()
            reader = group.create_task(self._listen(socket))
            try:
                await self._subscribe()
                async with asyncio.timeout(DEADLINE):
                    await self._ready.wait()
                yield self
            finally:
                reader.cancel()

    async def say(self, text: str, reply_to: str | None = None, **changes: Any) -> str:
        """The id of the message, when the relay has it."""
        rumor = self.write(text, reply_to, **changes)
        assert (await self.publish(self.wrap(rumor)))[0]
        return id_of(rumor)

    def write(
        self, text: str, reply_to: str | None = None, *, tags: Sequence[Sequence[str]] = (), kind: int = 14, at: int = 0
    ) -> sdk.UnsignedEvent:
        public = sdk.PublicKey.parse(self.to).to_hex()
        written = [["p", public], *([["e", reply_to]] if reply_to else []), *tags]
        body = {
            "pubkey": self.public,
            "created_at": at or int(time.time()),
            "kind": kind,
            "tags": [list(tag) for tag in written],
            "content": text,
        }
        return sdk.UnsignedEvent.from_json(json.dumps(body)).ensure_id()

    def wrap(self, rumor: sdk.UnsignedEvent) -> dict[str, Any]:
        gift = sdk.nip59_make_gift_wrap(self.keys, sdk.PublicKey.parse(self.to), rumor)
        found: dict[str, Any] = json.loads(gift.as_json())
        return found

    async def publish(self, event: dict[str, Any]) -> tuple[bool, str]:
        answer: asyncio.Future[tuple[bool, str]] = asyncio.get_running_loop().create_future()
        self._answers[event["id"]] = answer
        await self._send("EVENT", event)
        async with asyncio.timeout(DEADLINE):
            return await answer

    async def _send(self, *parts: object) -> None:
        assert self._socket is not None
        await self._socket.send(json.dumps(parts))

    async def _subscribe(self) -> None:
        await self._send("REQ", "mine", {"kinds": [1059], "#p": [self.public]})

    async def _listen(self, socket: ClientConnection) -> None:
        async for text in socket:
            match json.loads(text):
                case ["AUTH", str(challenge)]:
                    await self._authenticate(challenge)
                case ["OK", str(id), bool(is_taken), *rest]:
                    waiting = self._answers.pop(id, None)
                    if waiting is not None and not waiting.done():
                        waiting.set_result((is_taken, str(rest[0]) if rest else ""))
                    elif waiting is None and is_taken:
                        await self._subscribe()  # the answer to our authentication
                case ["EOSE", "mine"]:
                    self._ready.set()
                case ["EVENT", "mine", dict() as event]:
                    self._open(event)

    def _open(self, event: dict[str, Any]) -> None:
        gift = sdk.UnwrappedGift.from_gift_wrap(self.keys, sdk.Event.from_json(json.dumps(event)))
        rumor: dict[str, Any] = json.loads(gift.rumor().as_json())
        replied = next((tag[1] for tag in rumor["tags"] if tag[0] == "e"), None)
        message = ReadMessage(rumor["id"], gift.sender().to_bech32(), rumor["content"], replied)
        if message not in self.read:
            self.read.append(message)

    async def _authenticate(self, challenge: str) -> None:
        body = {
            "pubkey": self.public,
            "created_at": int(time.time()),
            "kind": 22242,
            "tags": [["relay", self._url], ["challenge", challenge]],
            "content": "",
        }
        event = sdk.UnsignedEvent.from_json(json.dumps(body)).sign(self.keys)
        await self._send("AUTH", json.loads(event.as_json()))
