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
from websockets.frames import CloseCode

from freehold.gateway.rate_limit import RateLimit
from freehold.mesh.nostr.event import BadEvent, NostrEvent, read_event, sign_event
from freehold.mesh.nostr.keys import NostrKey
from freehold.mesh.outbox import RelayOutbox
from freehold.mesh.relay_status import RelayStateName
from freehold.mesh.stored_pages import StoredPages
from freehold.observe.logs import log_unexpected

AUTH = 22242
OPEN_TIMEOUT = 15.0
OK_TIMEOUT = 20.0
MIN_WAIT, MAX_WAIT = 1.0, 300.0
STEADY = 10.0
"""Seconds of connection after which a relay counts as well again."""
MAX_MESSAGE = 256 * 1024
MESSAGES_PER_SECOND, MESSAGE_BURST = 200, 2_000
"""Messages of any kind that a relay may send."""
LATER_PAUSE = 2.5
"""Seconds before the next filter: it brings at most as many events as may come in this time."""
SUBSCRIPTION = "freehold-"
"""How the names of our subscriptions begin. Each has a name of its own, so that no late answer is taken for another."""
HELD_PAUSE = 60.0
"""Seconds after which events that were dated ahead are tried again."""
DATED_AHEAD = (
    "messages wait because they are dated ahead of its clock: set the clock of this machine, and they are sent in time"
)

log = logging.getLogger("freehold.mesh")


class RelayFailed(Exception):
    """Why the connection ended, in plain words."""


@dataclass(frozen=True)
class RelayHandlers:
    """What a connection asks of the rest. `receive` gets events with a right id and a signature that is not checked."""

    key: Callable[[], NostrKey]
    filters: Callable[[str], list[dict[str, Any]]]
    """What is wanted. Of the first filter all that the relay has kept is read, page by page. Then the third and all others
    are asked for, each by itself: a relay refuses a request that is too long."""
    receive: Callable[[str, NostrEvent], Awaitable[None]]
    note: Callable[[str, RelayStateName, str | None], Awaitable[None]]
    caught_up: Callable[[str], Awaitable[None]]
    """The relay has sent everything that it kept."""
    answered: Callable[[str, bool, str], None]
    """Whether a relay has taken an event, by its id, and otherwise why not."""
    complain: Callable[[str, str | None], Awaitable[None]]
    """What is wrong with a relay that is connected; None when nothing is."""
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
        self._asked: str | None = None
        """The event that answers the last challenge."""
        self._sending: str | None = None
        """The event that was sent and is not answered."""
        self._authenticated = asyncio.Event()
        self._refresh = asyncio.Event()
        self._retry = asyncio.Event()
        self._refused: str | None = None
        self._refusals = 0
        self._wanted: dict[str, Any] = {}
        self._pages = StoredPages()
        self._live: str | None = None
        """The subscription that brings what is new, and the first page of what was kept."""
        self._page: str | None = None
        """The subscription of the page that is read now; None when all are read."""
        self._later: list[dict[str, Any]] = []
        """Filters that were not asked for yet."""
        self._others: list[str] = []
        """The subscriptions of such filters, the one that is read now last."""
        self._count = 0
        self._held: dict[str, int] = {}
        """The ids and times of events that wait until their time has come at the relay as well."""
        self._held_until = 0.0
        """When they are tried again, by the clock of the loop."""

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
            if await self._pause(wait * (0.5 + random.random() / 2)):  # noqa: S311 - spreads reconnections
                wait = MIN_WAIT  # it may answer otherwise

    async def _pause(self, seconds: float) -> bool:
        """Whether there was news meanwhile. Then it ends early."""
        try:
            async with asyncio.timeout(seconds):
                await self._retry.wait()
        except TimeoutError:
            pass
        is_news = self._retry.is_set()
        self._retry.clear()
        return is_news

    async def _connect(self) -> None:
        self._answers.clear()
        self._authenticated.clear()
        self._refused = None
        self._live = self._page = None
        self._later, self._others = [], []
        try:
            async with connect(
                self.url, max_size=MAX_MESSAGE, open_timeout=OPEN_TIMEOUT, proxy=None, compression=None, close_timeout=2
            ) as socket:
                await self._handlers.note(self.url, "ok", None)
                try:
                    await self._talk(socket)
                finally:
                    sending, self._sending = self._sending, None
                    if sending is not None and _found_too_big(socket):
                        # It would end each connection, and hold up what waits behind it.
                        await self._finish(sending, False, "it is too large")
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
        rate = RateLimit(MESSAGES_PER_SECOND, MESSAGE_BURST)
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
            case ["EVENT", str(name), dict() as event] if name.startswith(SUBSCRIPTION):
                with suppress(BadEvent):
                    await self._take_event(name, read_event(event))
            case ["EOSE", str(name)] if name == self._page:
                await self._turn_page(socket, name)
            case ["EOSE", str(name)] if name in self._others[-1:]:
                await self._ask_for_others(socket)
            case ["OK", str(id), bool(is_taken), *rest]:
                waiting = self._answers.pop(id, None)
                if waiting is not None and not waiting.done():
                    waiting.set_result((is_taken, str(rest[0])[:200] if rest else ""))
            case ["AUTH", str(challenge)] if len(challenge) <= 200:
                await self._authenticate(socket, challenge)
            case ["CLOSED", str(name), str(reason)] if name == self._live and reason.startswith("auth-required"):
                if self._authenticated.is_set():
                    self._refresh.set()
            case ["CLOSED", str(name), str(reason)] if name == self._live:
                raise RelayFailed(f"it refuses to tell: {_printable(reason)}")
            case ["CLOSED", str(name), str(reason)] if name == self._page:
                more = {"relay": self.url, "reason": _printable(reason)}
                log.warning("a relay does not tell all that it has kept", extra=more)
                self._page = None
                await self._handlers.caught_up(self.url)
                await self._ask_for_others(socket)
            case ["CLOSED", str(name), str()] if name in self._others[-1:]:
                self._others.pop()
                await self._ask_for_others(socket)

    async def _take_event(self, name: str, event: NostrEvent) -> None:
        if name == self._page and event.kind in self._wanted["kinds"]:
            self._pages.note(event)
        await self._handlers.receive(self.url, event)

    async def _turn_page(self, socket: ClientConnection, name: str) -> None:
        """Asks for the next page of what the relay has kept, slowly enough that it does not count as a flood."""
        pages, count = self._pages, self._pages.count
        self._page = None
        if name != self._live:
            await socket.send(json.dumps(["CLOSE", name]))
        if not pages.turn(self.url):
            await self._handlers.caught_up(self.url)
            await self._ask_for_others(socket)
            return
        await asyncio.sleep(count / MESSAGES_PER_SECOND)
        if pages is self._pages:  # otherwise all is asked for again meanwhile
            self._page = self._name_subscription()
            await socket.send(json.dumps(["REQ", self._page, {**self._wanted, "until": pages.until}]))

    async def _ask_for_others(self, socket: ClientConnection) -> None:
        """One filter after the other, as slowly as pages."""
        others, later = self._others, self._later
        if not later:
            return
        await asyncio.sleep(LATER_PAUSE)
        if later is self._later:  # otherwise all is asked for again meanwhile
            others.append(self._name_subscription())
            await socket.send(json.dumps(["REQ", others[-1], later.pop(0)]))

    def _name_subscription(self) -> str:
        self._count += 1
        return f"{SUBSCRIPTION}{self._count}"

    async def _authenticate(self, socket: ClientConnection, challenge: str) -> None:
        tags = [["relay", self.url], ["challenge", challenge]]
        event = sign_event(self._handlers.key(), AUTH, "", tags, created_at=int(time.time()) + self._choose_offset())
        answer: asyncio.Future[tuple[bool, str]] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(self._note_authentication)
        self._answers.pop(self._asked or "", None)  # a relay may ask again and again
        self._answers[event.id], self._asked = answer, event.id
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
            for name in {self._live, self._page, *self._others} - {None}:
                await socket.send(json.dumps(["CLOSE", name]))
            self._later, self._others = filters[2:], []
            self._wanted, self._pages = filters[0], StoredPages()
            self._live = self._page = self._name_subscription()
            await socket.send(json.dumps(["REQ", self._live, *filters[:2]]))
            await self._refresh.wait()

    async def _send_waiting(self, socket: ClientConnection) -> None:
        while True:
            self._work.clear()
            if self._held and asyncio.get_running_loop().time() >= self._held_until:
                await self._offer_held(socket)
            waiting = await asyncio.to_thread(self._outbox.list, self.url, without=tuple(self._held))
            for event in waiting:
                if not await self._offer(socket, event):
                    break  # woken when the relay has accepted our key
            else:
                if waiting:
                    continue
            await self._wait_for_work()

    async def _wait_for_work(self) -> None:
        """Until there is something to send, or what was held back is tried again."""
        await self._handlers.complain(self.url, DATED_AHEAD if self._held else None)
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._held_until if self._held else None):
                await self._work.wait()

    async def _offer_held(self, socket: ClientConnection) -> None:
        """The earliest first, until one is refused again. What the outbox has dropped meanwhile is forgotten."""
        self._held_until = asyncio.get_running_loop().time() + HELD_PAUSE
        kept = await asyncio.to_thread(self._outbox.list_ids, self.url)
        self._held = {id: at for id, at in self._held.items() if id in kept}
        for id in sorted(self._held, key=self._held.__getitem__):
            event = await asyncio.to_thread(self._outbox.find, self.url, id)
            if event is not None and (not await self._offer(socket, event) or id in self._held):
                return

    async def _offer(self, socket: ClientConnection, event: NostrEvent) -> bool:
        """Whether the next one may be sent. One that is dated ahead of the relay's clock is kept: it may be taken later."""
        is_taken, reason = await self._publish(socket, event)
        if not is_taken and reason.startswith("auth-required"):
            return False
        if not is_taken and reason.startswith(("rate-limited", "error")):
            raise RelayFailed(_printable(reason))
        if not is_taken and _is_dated_ahead(reason):
            if not self._held:
                self._held_until = asyncio.get_running_loop().time() + HELD_PAUSE
            self._held[event.id] = event.created_at
            self._handlers.answered(event.id, False, f"{self.url}: {_printable(reason)}")
        else:
            self._held.pop(event.id, None)
            await self._finish(event.id, is_taken, reason)
        return True

    async def _finish(self, id: str, is_taken: bool, reason: str) -> None:
        """It does not wait any more."""
        if not is_taken:
            log.warning("a relay refused an event", extra={"relay": self.url, "reason": _printable(reason)})
        self._handlers.answered(id, is_taken, f"{self.url}: {_printable(reason)}")
        await asyncio.to_thread(self._outbox.remove, self.url, id)

    async def _publish(self, socket: ClientConnection, event: NostrEvent) -> tuple[bool, str]:
        answer: asyncio.Future[tuple[bool, str]] = asyncio.get_running_loop().create_future()
        self._answers[event.id], self._sending = answer, event.id
        await socket.send(json.dumps(["EVENT", event.as_json()], ensure_ascii=False))
        try:
            async with asyncio.timeout(OK_TIMEOUT):
                found = await answer
        except TimeoutError:
            raise RelayFailed("it does not say whether it took an event") from None
        self._sending = None
        return found


def _found_too_big(socket: ClientConnection) -> bool:
    """Whether the relay has closed the connection because of the size of what we sent."""
    closing = socket.protocol.close_rcvd
    is_its_own = bool(socket.protocol.close_rcvd_then_sent)
    return is_its_own and closing is not None and closing.code == CloseCode.MESSAGE_TOO_BIG


def _first_line(error: BaseException) -> str:
    return _printable((str(error) or type(error).__name__).splitlines()[0])


def _printable(text: str) -> str:
    return "".join(one if one.isprintable() else " " for one in text[:200])


def _is_dated_ahead(reason: str) -> bool:
    """Relays say it in their own words. A range with two ends does not say which one was passed."""
    found = reason.lower()
    return found.startswith("invalid") and any(word in found for word in ("ahead", "future", "too late", "range (+"))
