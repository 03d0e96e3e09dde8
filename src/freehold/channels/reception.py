"""Takes what comes in through one channel: the owner's messages are stored, everybody else is counted and gets no answer."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from freehold.channels.contract import ChannelAway, IncomingBatch, IncomingMessage, OwnerAddress, OwnerChannel
from freehold.channels.pairing import Pairing
from freehold.channels.received import ReceivedMessages
from freehold.channels.store import ChannelRow, ChannelStore
from freehold.gateway.rate_limit import RateLimit

MIN_DELAY, MAX_DELAY = 1.0, 300.0
RECEIVE_TIMEOUT = 60.0
RATE, BURST = 1 / 3, 20.0
"""Messages of the owner a second, and how many may come at once. More are not carried out."""

log = logging.getLogger("freehold.channels")


@dataclass(frozen=True)
class ReceptionHandlers:
    """What is done with messages. `urgent` is the kill switch: it waits for nothing. `tell` answers the owner."""

    is_urgent: Callable[[IncomingMessage], bool]
    urgent: Callable[[ChannelRow, IncomingMessage], Awaitable[None]]
    stored: Callable[[], None]
    paired: Callable[[], Awaitable[None]]
    tell: Callable[[str, str, str], Awaitable[None]]


class ChannelReception:
    """`run` in one task. Nothing that a stranger sends costs more than a count."""

    def __init__(
        self,
        row: ChannelRow,
        channel: OwnerChannel,
        store: ChannelStore,
        received: ReceivedMessages,
        pairing: Pairing,
        handlers: ReceptionHandlers,
    ) -> None:
        self._row = row
        self._channel = channel
        self._store = store
        self._received = received
        self._pairing = pairing
        self._handlers = handlers
        self._limit = RateLimit(RATE, BURST)

    async def run(self) -> None:
        """Until cancelled. Raises FreeholdError when the database cannot be written."""
        cursor, delay, state = self._row.cursor, MIN_DELAY, ""
        while True:
            began = time.monotonic()
            try:
                async with asyncio.timeout(RECEIVE_TIMEOUT):
                    batch = await self._channel.receive(cursor)
            except (ChannelAway, TimeoutError) as error:
                words = str(error) or "no answer in time"
                await asyncio.to_thread(self._store.set_state, self._row.name, "away", words)
                wait = max(delay, error.wait if isinstance(error, ChannelAway) else 0.0)
                delay, state = min(MAX_DELAY, delay * 2), "away"
                await asyncio.sleep(wait)
                continue
            if state != "ok":
                await asyncio.to_thread(self._store.set_state, self._row.name, "ok", None)
                state = "ok"
            delay = MIN_DELAY
            if batch.messages or batch.ignored or batch.cursor != cursor:
                await self._take(batch)
                cursor = batch.cursor
            elif time.monotonic() - began < MIN_DELAY:
                await asyncio.sleep(MIN_DELAY)  # a server that does not hold the poll

    async def _take(self, batch: IncomingBatch) -> None:
        ours, strangers = list[IncomingMessage](), batch.ignored
        is_paired = False
        pairs = await asyncio.to_thread(self._pairing.is_open, self._row.name)
        for message in batch.messages:
            if OwnerAddress(message.sender, message.chat) == self._row.owner:
                ours.append(message)
            elif pairs and await self._is_code(message):
                await asyncio.to_thread(self._received.note_code, self._row.name, message.id)
                is_paired = True
            else:
                strangers += 1
        new = [one for one in ours if not await asyncio.to_thread(self._received.is_known, self._row.name, one.id)]
        for message in new:
            if self._handlers.is_urgent(message):
                await self._handlers.urgent(self._row, message)
        allowed = [one for one in new if self._handlers.is_urgent(one) or not self._limit.wait("")]
        refused = len(new) - len(allowed)
        refused += await asyncio.to_thread(self._received.store, self._row.name, allowed, batch.cursor, strangers)
        if refused:
            words = f"{refused} of your messages were not carried out: they came too fast. Send them again."
            await self._handlers.tell(self._row.name, f"too-fast:{int(time.time() // 60)}", words)
        if batch.is_cut and self._row.owner is not None:
            words = "Some of your messages were not read, because many came at once. Send them again."
            await self._handlers.tell(self._row.name, f"cut:{int(time.time() // 60)}", words)
        if allowed:
            self._handlers.stored()
        if is_paired:
            # Last, because it starts this channel again: the position is stored by now.
            await self._handlers.paired()

    async def _is_code(self, message: IncomingMessage) -> bool:
        """Whether a stranger says the code. Nobody is told whether there is one."""
        sender = OwnerAddress(message.sender, message.chat)
        who = self._row.who
        return await asyncio.to_thread(lambda: self._pairing.try_code(self._row, message.text, sender, who=who))
