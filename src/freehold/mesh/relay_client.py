"""The connection to one relay: authenticates, subscribes, sends what waits, and comes back after every failure."""

import asyncio
import json
import logging
import random
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from freehold.gateway.rate_limit import RateLimit
from freehold.mesh.nostr.event import BadEvent, NostrEvent, read_event, sign_event
from freehold.mesh.nostr.keys import NostrKey
from freehold.mesh.outbox import RelayOutbox
from freehold.mesh.relay_status import RelayStateName
from freehold.observe.logs import log_unexpected

AUTH = 22242
OPEN_TIMEOUT = 15.0
OK_TIMEOUT = 20.0
MIN_WAIT, MAX_WAIT = 1.0, 300.0
STEADY = 10.0
"""Seconds of connection after which a relay counts as well again."""
MAX_MESSAGE = 256 * 1024
EVENTS_PER_SECOND, EVENT_BURST = 200, 2_000
SUBSCRIPTION = "freehold"

log = logging.getLogger("freehold.mesh")


class RelayFailed(Exception):
    """Why the connection ended, in plain words."""


@dataclass(frozen=True)
class RelayHandlers:
    """What a connection asks of the rest. `receive` gets events with a right id and a signature that is not checked."""

    key: Callable[[], NostrKey]
    filters: Callable[[str], list[dict[str, Any]]]
    receive: Callable[[str, NostrEvent], Awaitable[None]]
    note: Callable[[str, RelayStateName, str | None], Awaitable[None]]
    caught_up: Callable[[str], Awaitable[None]]
    """The relay has sent everything that it kept."""
    answered: Callable[[str, bool, str], None]
    """Whether a relay has taken an event, by its id, and otherwise why not."""
    offsets: Callable[[], list[int]] = list
    """Seconds by which the clocks of neighbours are ahead of ours. A relay may think as they do."""


class RelayClient:
    """`run` keeps the connection. `wake` says that something waits to be sent."""

    def __init__(self, url: str, outbox: RelayOutbox, handlers: RelayHandlers) -> None:
        self.url = url
        self._outbox = outbox
        self._handlers = handlers
        self._work = asyncio.Event()
        self._answers: dict[str, asyncio.Future[tuple[bool, str]]] = {}
        self._authenticated = asyncio.Event()
        self._refresh = asyncio.Event()
        self._retry = asyncio.Event()
        self._refused: str | None = None
        self._refusals = 0

    def wake(self) -> None:
        self._work.set()

    def refresh(self) -> None:
        """The neighbours have changed: other filters, and perhaps another answer to our key."""
        self._refresh.set()
        self._retry.set()

    async def run(self) -> None:
        """Until cancelled."""
        wait = MIN_WAIT
        while True:
            began = time.monotonic()
            try:
                await self._connect()
                reason = "the connection ended"
            except RelayFailed as error:
                reason = str(error)
            except Exception as error:
                log_unexpected(error, "the connection to a relay failed", relay=self.url)
                reason = "Freehold has an error: freehold logs shows the cause"
            await self._handlers.note(self.url, "away", reason)
            wait = MIN_WAIT if time.monotonic() - began > STEADY else min(MAX_WAIT, wait * 2)
            with suppress(TimeoutError):
                async with asyncio.timeout(wait * (0.5 + random.random() / 2)):  # noqa: S311 - spreads reconnections
                    await self._retry.wait()
                    wait = MIN_WAIT  # there is news, so that it may answer otherwise
            self._retry.clear()

    async def _connect(self) -> None:
        self._answers.clear()
        self._authenticated.clear()
        self._refused = None
        try:
            async with connect(
                self.url, max_size=MAX_MESSAGE, open_timeout=OPEN_TIMEOUT, proxy=None, compression=None, close_timeout=2
            ) as socket:
                await self._handlers.note(self.url, "ok", None)
                await self._talk(socket)
        except (OSError, WebSocketException, TimeoutError) as error:
            raise RelayFailed(_first_line(error)) from None

    async def _talk(self, socket: ClientConnection) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(work(socket)) for work in (self._send_waiting, self._subscribe)]
                try:
                    await self._read(socket)
                finally:
                    for task in tasks:
                        task.cancel()
        except* (OSError, WebSocketException, TimeoutError, RelayFailed) as group:
            raise RelayFailed(_first_line(group.exceptions[0])) from None

    # Reading

    async def _read(self, socket: ClientConnection) -> None:
        rate = RateLimit(EVENTS_PER_SECOND, EVENT_BURST)
        async for text in socket:
            if rate.wait("") > 0:
                raise RelayFailed("it sends too much")
            try:
                value = json.loads(text)
            except (ValueError, RecursionError):
                continue
            await self._handle(socket, value)
            await asyncio.sleep(0)  # the answer to our authentication is noted in the next round of the loop
            if self._refused is not None:
                raise RelayFailed(f"it refuses our key: {self._refused}")
        raise RelayFailed(socket.close_reason or "it closed the connection")

    async def _handle(self, socket: ClientConnection, value: object) -> None:
        match value:
            case ["EVENT", str(name), dict() as event] if name == SUBSCRIPTION:
                with suppress(BadEvent):
                    await self._handlers.receive(self.url, read_event(event))
            case ["EOSE", str(name)] if name == SUBSCRIPTION:
                await self._handlers.caught_up(self.url)
            case ["OK", str(id), bool(is_taken), *rest]:
                waiting = self._answers.pop(id, None)
                if waiting is not None and not waiting.done():
                    waiting.set_result((is_taken, str(rest[0])[:200] if rest else ""))
            case ["AUTH", str(challenge)] if len(challenge) <= 200:
                await self._authenticate(socket, challenge)
            case ["CLOSED", str(name), str(reason)] if name == SUBSCRIPTION and reason.startswith("auth-required"):
                if self._authenticated.is_set():
                    self._refresh.set()
            case ["CLOSED", str(name), str(reason)] if name == SUBSCRIPTION:
                raise RelayFailed(f"it refuses to tell: {_printable(reason)}")

    async def _authenticate(self, socket: ClientConnection, challenge: str) -> None:
        tags = [["relay", self.url], ["challenge", challenge]]
        event = sign_event(self._handlers.key(), AUTH, "", tags, created_at=int(time.time()) + self._choose_offset())
        answer: asyncio.Future[tuple[bool, str]] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(self._note_authentication)
        self._answers[event.id] = answer
        await socket.send(json.dumps(["AUTH", event.as_json()]))

    def _choose_offset(self) -> int:
        """First our own clock. After a refusal the clocks of neighbours are tried, one after the other."""
        offsets = [0, *dict.fromkeys(one for one in self._handlers.offsets() if one)]
        return offsets[self._refusals % len(offsets)]

    def _note_authentication(self, answer: "asyncio.Future[tuple[bool, str]]") -> None:
        if answer.cancelled():
            return
        is_taken, reason = answer.result()
        if is_taken:
            self._authenticated.set()
            self._refresh.set()
            self._work.set()
        else:
            self._refused = _printable(reason) or "no reason"
            self._refusals += 1

    # Sending

    async def _subscribe(self, socket: ClientConnection) -> None:
        while True:
            self._refresh.clear()
            filters = self._handlers.filters(self.url)
            await socket.send(json.dumps(["REQ", SUBSCRIPTION, *filters]))
            await self._refresh.wait()

    async def _send_waiting(self, socket: ClientConnection) -> None:
        while True:
            self._work.clear()
            waiting = await asyncio.to_thread(self._outbox.list, self.url)
            for event in waiting:
                is_taken, reason = await self._publish(socket, event)
                if not is_taken and reason.startswith("auth-required"):
                    break  # woken when the relay has accepted our key
                if not is_taken and reason.startswith(("rate-limited", "error")):
                    raise RelayFailed(_printable(reason))
                if not is_taken:
                    log.warning("a relay refused an event", extra={"relay": self.url, "reason": _printable(reason)})
                self._handlers.answered(event.id, is_taken, f"{self.url}: {_printable(reason)}")
                await asyncio.to_thread(self._outbox.remove, self.url, event.id)
            else:
                if waiting:
                    continue
            await self._work.wait()

    async def _publish(self, socket: ClientConnection, event: NostrEvent) -> tuple[bool, str]:
        answer: asyncio.Future[tuple[bool, str]] = asyncio.get_running_loop().create_future()
        self._answers[event.id] = answer
        await socket.send(json.dumps(["EVENT", event.as_json()], ensure_ascii=False))
        try:
            async with asyncio.timeout(OK_TIMEOUT):
                return await answer
        except TimeoutError:
            raise RelayFailed("it does not say whether it took an event") from None


def _first_line(error: BaseException) -> str:
    return _printable((str(error) or type(error).__name__).splitlines()[0])


def _printable(text: str) -> str:
    return "".join(one if one.isprintable() else " " for one in text[:200])
