"""The relay of this Freehold: NIP-01 with authentication (NIP-42), for the owner and for paired neighbours."""

import asyncio
import json
import secrets
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any

from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from freehold.gateway.addresses import rate_limit_key
from freehold.gateway.principal import principal_of
from freehold.gateway.rate_limit import RateLimit
from freehold.mesh.nostr.direct_message import WRAP
from freehold.mesh.nostr.event import BadEvent, NostrEvent, read_event
from freehold.mesh.nostr.filter import BadFilter, NostrFilter, index_tags, read_filter
from freehold.mesh.relay_store import OWN, RelayStore

AUTH = 22242
AUTH_TIMEOUT = 15.0
AUTH_WINDOW = 600.0
MAX_AHEAD = 900
"""Seconds by which an event may be dated ahead."""
MAX_SUBSCRIPTIONS = 20
MAX_FILTERS = 10
"""Of one subscription."""
MAX_FILTERS_EACH = 60
"""Of all subscriptions of a connection: each is compared with every new event."""
MAX_SUBSCRIPTION_ID = 64
MAX_MESSAGE = 64 * 1024
MAX_QUEUED = 1_000
MAX_QUEUED_LENGTH = 4 * 1024 * 1024
MESSAGES_PER_SECOND, MESSAGE_BURST = 100, 500
EVENTS_PER_SECOND, EVENT_BURST = 100, 1_000
"""Events of one key, by however many connections."""
QUERIES_PER_SECOND, QUERY_BURST = 5, 40
MAX_STRANGERS_EACH = 8
"""Connections of one address that have not authenticated."""
MAX_CONNECTIONS_EACH = 8
"""Connections of one key."""
MAX_KEYS = 10
"""Keys that one connection may have."""
MAX_REFUSED = 200
"""Messages beyond the rate after which a connection is closed."""
PRIVATE = frozenset({4, WRAP, 21_059})
"""Direct messages: of NIP-04, in a gift wrap, and in one that is not kept."""
POLICY, OVERLOADED = 1008, 1013

IsAllowed = Callable[[str], bool]
"""Whether a key may use the relay now."""
OnEvent = Callable[[NostrEvent], Awaitable[None]]


class RelayServer:
    """`serve` runs one connection. `on_event` hears of each new event, from whomever it came."""

    def __init__(self, store: RelayStore, max_connections: int, is_allowed: IsAllowed, on_event: OnEvent) -> None:
        self._store = store
        self._max_connections = max_connections
        self._is_allowed = is_allowed
        self._on_event = on_event
        self._connections: set[RelayConnection] = set()
        self.rates = RateLimit(EVENTS_PER_SECOND, EVENT_BURST)
        """Events, by the key that sends them."""

    def __len__(self) -> int:
        return len(self._connections)

    async def serve(self, socket: WebSocket) -> None:
        """Until the client or the relay closes it."""
        await socket.accept()
        address = rate_limit_key(principal_of(socket.scope).address)
        if not self._has_room(address):
            await socket.close(OVERLOADED, "too many connections")
            return
        connection = RelayConnection(self, socket, address)
        self._connections.add(connection)
        try:
            await connection.run()
        finally:
            self._connections.discard(connection)

    def _has_room(self, address: str) -> bool:
        """Half of the places are for those who have authenticated, whoever else knocks."""
        strangers = [one.address for one in self._connections if not one.keys]
        if len(self._connections) >= self._max_connections or strangers.count(address) >= MAX_STRANGERS_EACH:
            return False
        return len(strangers) < max(1, self._max_connections // 2)

    def count_of(self, key: str) -> int:
        """The connections of one key."""
        return sum(key in one.keys for one in self._connections)

    def close_revoked(self) -> None:
        """Ends the connections of keys that may not use it any more."""
        for one in self._connections:
            if one.keys and not all(self._is_allowed(key) for key in one.keys):
                one.end(POLICY, "restricted: this key may not use the relay any more")

    def is_allowed(self, key: str) -> bool:
        return self._is_allowed(key)

    async def add(self, event: NostrEvent, publisher: str = OWN) -> bool:
        """Stores a checked event and sends it to whoever waits for it. Whether it is new."""
        is_new = event.is_ephemeral or await asyncio.to_thread(self._store.add, event, publisher)
        if is_new:
            text = json.dumps(event.as_json(), ensure_ascii=False, separators=(",", ":"))
            tags = index_tags(event)
            for one in list(self._connections):
                one.offer(event, tags, text)
                await asyncio.sleep(0)  # a connection may have many filters, and others wait
            await self._on_event(event)
        return is_new

    async def find(self, filters: list[NostrFilter]) -> list[NostrEvent]:
        return await asyncio.to_thread(self._store.find, filters)


class RelayConnection:
    """One client. What it sends is data: every message is checked, counted and answered."""

    def __init__(self, server: RelayServer, socket: WebSocket, address: str) -> None:
        self._server = server
        self.address = address
        self._socket = socket
        self._challenge = secrets.token_hex(16)
        self.keys: set[str] = set()
        self._authenticated = asyncio.Event()
        self._subscriptions: dict[str, list[NostrFilter]] = {}
        self._waiting: deque[str] = deque()
        self._length = 0
        self._wake = asyncio.Event()
        self._taken = asyncio.Event()
        self._ended = asyncio.Event()
        self._end = (1000, "")
        self._rate = RateLimit(MESSAGES_PER_SECOND, MESSAGE_BURST)
        self._queries = RateLimit(QUERIES_PER_SECOND, QUERY_BURST)
        self._refused = 0

    async def run(self) -> None:
        self._send("AUTH", self._challenge)
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work()) for work in (self._receive, self._expect_auth, self._write)]
            await self._ended.wait()
            for task in tasks:
                task.cancel()
        code, reason = self._end
        if self._socket.client_state is WebSocketState.CONNECTED:
            # A client that does not read will not read this either; the server then closes the connection.
            with suppress(TimeoutError, RuntimeError, OSError, WebSocketDisconnect):
                async with asyncio.timeout(0.25):
                    await self._socket.close(code, reason)

    def end(self, code: int, reason: str) -> None:
        """Nothing more is sent or read. Idempotent."""
        if not self._ended.is_set():
            self._end = (code, reason)
            self._ended.set()

    def offer(self, event: NostrEvent, tags: Mapping[str, AbstractSet[str]], text: str) -> None:
        """Sends an event if it may be seen here and a subscription wants it."""
        if not self._may_see(event):
            return
        for name, filters in self._subscriptions.items():
            if any(one.matches(event, tags) for one in filters):
                self._queue(f'["EVENT",{json.dumps(name)},{text}]')

    def _may_see(self, event: NostrEvent) -> bool:
        """A direct message is for its receiver only, and for its author where that is told."""
        return (
            event.kind not in PRIVATE
            or event.pubkey in self.keys
            or any(tag[:1] == ("p",) and tag[1] in self.keys for tag in event.tags if len(tag) > 1)
        )

    # Receiving

    async def _receive(self) -> None:
        try:
            while True:
                message = await self._socket.receive()
                if message["type"] == "websocket.disconnect":
                    break
                if self._rate.wait("") > 0:
                    # Not even read: a flood must cost little.
                    self._refused += 1
                    if self._refused > MAX_REFUSED:
                        self.end(POLICY, "rate-limited: too many messages")
                    elif self._refused == 1:
                        self._send("NOTICE", "rate-limited: slow down, some of your messages were dropped")
                    continue
                text = message.get("text")
                await self._handle(text if isinstance(text, str) else "")
        except WebSocketDisconnect:
            pass
        finally:
            self.end(1000, "")

    async def _expect_auth(self) -> None:
        try:
            async with asyncio.timeout(AUTH_TIMEOUT):
                await self._authenticated.wait()
        except TimeoutError:
            self.end(POLICY, "auth-required: no authentication in time")

    async def _handle(self, text: str) -> None:
        try:
            value = json.loads(text) if len(text) <= MAX_MESSAGE else None
        except (ValueError, RecursionError):
            value = None
        match value:
            case ["AUTH", dict() as event]:
                self._authenticate(event)
            case ["EVENT", dict() as event]:
                await self._publish(event)
            case ["REQ", str(name), *filters] if 1 <= len(name) <= MAX_SUBSCRIPTION_ID and filters:
                await self._subscribe(name, filters)
            case ["CLOSE", str(name)]:
                self._subscriptions.pop(name, None)
            case _:
                self._send("NOTICE", "invalid: this is not a message for a relay")

    def _authenticate(self, value: dict[str, Any]) -> None:
        id = _id_of(value)
        try:
            event = read_event(value)
        except BadEvent as error:
            self._send("OK", id, False, f"invalid: {error}")
            return
        host = self._socket.headers.get("host", "").lower()
        relay = (event.tag("relay") or "").lower().partition("://")[2].rstrip("/")
        is_for_here = event.kind == AUTH and event.tag("challenge") == self._challenge and relay == f"{host}/relay"
        if not is_for_here or abs(event.created_at - time.time()) > AUTH_WINDOW or not event.is_signed:
            self._send("OK", id, False, "invalid: not a signed answer to the challenge of this relay")
        elif not self._server.is_allowed(event.pubkey):
            self._send("OK", id, False, "restricted: this relay is for its owner and paired neighbours")
        elif event.pubkey not in self.keys and self._server.count_of(event.pubkey) >= MAX_CONNECTIONS_EACH:
            self._send("OK", id, False, "rate-limited: this key has too many connections")
        elif event.pubkey not in self.keys and len(self.keys) >= MAX_KEYS:
            self._send("OK", id, False, "rate-limited: this connection has too many keys")
        else:
            self.keys.add(event.pubkey)
            self._authenticated.set()
            self._send("OK", id, True, "")

    async def _publish(self, value: dict[str, Any]) -> None:
        id = _id_of(value)
        problem = "auth-required: this relay is for its owner and paired neighbours" if not self.keys else None
        event: NostrEvent | None = None
        if problem is None:
            try:
                event = read_event(value)
            except BadEvent as error:
                problem = f"invalid: {error}"
        if event is not None:
            problem = self._find_problem(event)
        if event is None or problem is not None:
            self._send("OK", id, False, problem)
            return
        publisher = min(self.keys)
        if self._server.rates.wait(publisher) > 0:
            self._send("OK", id, False, "rate-limited: too many events of this key")
            return
        is_new = await self._server.add(event, publisher)
        self._send("OK", event.id, True, "" if is_new else "duplicate: it is here already")

    def _find_problem(self, event: NostrEvent) -> str | None:
        if event.created_at > time.time() + MAX_AHEAD:
            return "invalid: it is dated too far ahead"
        if event.kind == AUTH:
            return "invalid: an answer to a challenge is not stored"
        if event.kind != WRAP and event.pubkey not in self.keys:
            return "restricted: only events of your own key"
        return None if event.is_signed else "invalid: its signature is wrong"

    async def _subscribe(self, name: str, values: list[object]) -> None:
        if not self.keys:
            self._send("CLOSED", name, "auth-required: this relay is for its owner and paired neighbours")
            return
        if self._queries.wait("") > 0:
            self._send("CLOSED", name, "rate-limited: too many requests")
            return
        if len(values) > MAX_FILTERS or (
            len(self._subscriptions) >= MAX_SUBSCRIPTIONS and name not in self._subscriptions
        ):
            self._send("CLOSED", name, "error: too many subscriptions or filters")
            return
        try:
            filters = [read_filter(one) for one in values]
        except BadFilter as error:
            self._send("CLOSED", name, f"invalid: {error}")
            return
        others = sum(len(one) for other, one in self._subscriptions.items() if other != name)
        if others + len(filters) > MAX_FILTERS_EACH:
            self._send("CLOSED", name, "error: too many filters")
            return
        self._subscriptions[name] = filters
        for event in reversed(await self._server.find(filters)):
            # It is told as fast as it reads: more, or larger events, than may wait must not look like a slow reader.
            while len(self._waiting) >= MAX_QUEUED // 2 or self._length >= MAX_QUEUED_LENGTH // 2:
                self._taken.clear()
                await self._taken.wait()
            if self._may_see(event):
                self._send("EVENT", name, event.as_json())
        self._send("EOSE", name)

    # Sending

    def _send(self, *parts: object) -> None:
        self._queue(json.dumps(parts, ensure_ascii=False, separators=(",", ":")))

    def _queue(self, text: str) -> None:
        if len(self._waiting) >= MAX_QUEUED or self._length >= MAX_QUEUED_LENGTH:
            self.end(OVERLOADED, "too slow: connect again and read on")
            return
        self._waiting.append(text)
        self._length += len(text)
        self._wake.set()

    async def _write(self) -> None:
        try:
            while True:
                while self._waiting:
                    text = self._waiting.popleft()
                    self._length -= len(text)
                    self._taken.set()
                    await self._socket.send_text(text)
                self._wake.clear()
                await self._wake.wait()
        except (WebSocketDisconnect, RuntimeError, OSError):
            self.end(1000, "")


def _id_of(value: dict[str, Any]) -> str:
    id = value.get("id")
    return id[:64] if isinstance(id, str) else ""
