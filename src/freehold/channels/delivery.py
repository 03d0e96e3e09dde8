"""Sends what waits for one channel: at least once, across crashes and long absences of its server."""

import asyncio
import random
import time
from collections.abc import Callable

from freehold.channels.contract import ChannelAway, ChannelRefused, OutgoingMessage, OwnerChannel
from freehold.channels.outbox import REPLY, Outbox, StoredMessage
from freehold.channels.quiet_hours import find_due
from freehold.channels.store import ChannelRow, ChannelStore
from freehold.channels.words import FRAME, cut, measure
from freehold.gateway.rate_limit import RateLimit

MIN_DELAY, MAX_DELAY = 1.0, 300.0
MAX_PAUSE = 300.0
"""Seconds after which the outbox is looked at again, whatever the clock says: it may have been set."""
RATE, BURST = 1 / 3, 20.0
"""Messages a second to one channel, and how many may come at once."""
SEND_TIMEOUT = 90.0


class ChannelDelivery:
    """`run` in one task. `wake` when something may be due."""

    def __init__(
        self,
        row: ChannelRow,
        channel: OwnerChannel,
        outbox: Outbox,
        store: ChannelStore,
        is_stale: Callable[[StoredMessage], bool],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._row = row
        self._channel = channel
        self._outbox = outbox
        self._store = store
        self._is_stale = is_stale
        self._clock = clock
        self._limit = RateLimit(RATE, BURST)
        self._wake = asyncio.Event()
        self._retry_now = asyncio.Event()

    def wake(self) -> None:
        self._wake.set()

    def retry_now(self) -> None:
        """The owner wants it to be tried now."""
        self._retry_now.set()
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled. Raises FreeholdError when the outbox cannot be written."""
        while True:
            self._wake.clear()
            group, due = await asyncio.to_thread(self._take)
            if group:
                await self._send(group)
            elif due is None or due > self._clock():
                pause = MAX_PAUSE if due is None else min(MAX_PAUSE, due - self._clock())
                await _wait(self._wake, max(pause, 0.01))

    def _take(self) -> tuple[list[StoredMessage], float | None]:
        return self._outbox.take(self._row.name, self._is_stale, self._find_quiet_end())

    def _find_quiet_end(self) -> float:
        """When the quiet hours end that are now; now, when there are none. Blocks."""
        now, row = self._clock(), self._store.find(self._row.name)
        return now if row is None else find_due(row.preferences, now, 0.0)

    async def _send(self, group: list[StoredMessage]) -> None:
        """Returns when the server has them or does not take them, or when they are not to be sent as they are any more."""
        assert self._row.owner is not None
        delay = MIN_DELAY
        message = merge(group, self._channel.max_text)
        while True:
            pause = self._limit.wait("")
            if pause:
                await asyncio.sleep(pause)
            try:
                async with asyncio.timeout(SEND_TIMEOUT):
                    remote = await self._channel.send(message, self._row.owner)
            except ChannelRefused as error:
                await asyncio.to_thread(self._outbox.refuse, group, str(error))
                return
            except (ChannelAway, TimeoutError) as error:
                await asyncio.to_thread(
                    self._store.set_state, self._row.name, "away", str(error) or "no answer in time"
                )
                wait = max(delay, error.wait if isinstance(error, ChannelAway) else 0.0)
                delay = min(MAX_DELAY, delay * 2)
            else:
                await asyncio.shield(asyncio.to_thread(self._outbox.finish, group, remote))
                await asyncio.to_thread(self._store.set_state, self._row.name, "ok", None)
                return
            self._retry_now.clear()
            await _wait(self._retry_now, wait * random.uniform(0.75, 1.0))  # noqa: S311 - not a secret
            if await asyncio.to_thread(self._is_outdated, group):
                return

    def _is_outdated(self, group: list[StoredMessage]) -> bool:
        """Whether the owner has answered or read some of it meanwhile, or quiet hours have begun. Blocks."""
        if any(self._outbox.is_over(one, self._is_stale) for one in group):
            return True
        return group[0].tell != REPLY and self._find_quiet_end() > self._clock()


def merge(group: list[StoredMessage], limit: int) -> OutgoingMessage:
    """Several pieces of news are one message. Each has its link, and the same room for words."""
    first = group[0]
    key = first.sending_key
    if len(group) == 1:
        return OutgoingMessage(key, first.subject, first.text, first.link, first.reply_to)
    base = "/".join(first.link.split("/", 3)[:3])
    room = (limit - FRAME) // len(group)
    parts = [
        cut(f"{one.subject}\n{one.text}".strip(), max(60, room - measure(one.link) - 3)) + f"\n{one.link}"
        for one in group
    ]
    return OutgoingMessage(key, f"{len(group)} pieces of news", "\n\n".join(parts), base)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        pass
