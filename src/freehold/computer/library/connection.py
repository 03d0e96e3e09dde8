"""A link that is made again whenever it is lost."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from freehold.computer.contract.transport import SocketTransport, Transport
from freehold.computer.library.heartbeat import PING_EVERY
from freehold.computer.library.link import Link
from freehold.computer.library.use import ComputerUse, use_socket
from freehold.errors import FreeholdError

LinkState = Literal["connecting", "healthy", "unhealthy", "lost", "closed"]
_BACKOFF = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)

Restore = Callable[[Link], Awaitable[None]]


class ComputerConnection:
    """`link` is the live link, or raises. `state` and `subscribe` report its health.

    The guest kills what ran on a lost link, except terminals. Callbacks in `restored` set up again what every link
    needs, such as ports to listen on, before the state becomes healthy.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        reconnect: bool = True,
        clock: Callable[[], float] = time.monotonic,
        interval: float = PING_EVERY,
    ) -> None:
        self.transport = transport
        self._reconnect = reconnect
        self._clock = clock
        self._interval = interval
        self._link: Link | None = None
        self._error: FreeholdError | None = None
        self._task: asyncio.Task[None] | None = None
        self._subscribers: list[Callable[[LinkState, FreeholdError | None], None]] = []
        self._changed: asyncio.Future[None] | None = None
        self.accepts: dict[tuple[int, int], Callable[[Link, int], None]] = {}
        self.restored: list[Restore] = []
        self.state: LinkState = "connecting"
        self.use = ComputerUse(self._note_sleep, self._note_use_lost)

    async def open(self) -> None:
        """Make the first link. The caller gets its error."""
        link = await self._connect()
        if self._reconnect:
            self._task = asyncio.create_task(self._keep_connected(link), name=f"link to {self.transport.address}")
        else:
            link.ended.add_done_callback(lambda ended: self._mark_lost(ended.result()))

    @property
    def live(self) -> bool:
        return self._link is not None and not self._link.ended.done()

    @property
    def link(self) -> Link:
        if self._link is None or self._link.ended.done():
            if self._error is not None and self.state != "closed":
                raise FreeholdError(
                    "computer.unreachable",
                    f"The computer cannot be reached: {self._error.message}",
                    hint=self._error.hint,
                )
            raise FreeholdError("computer.unreachable", "The computer is not connected")
        return self._link

    def subscribe(self, callback: Callable[[LinkState, FreeholdError | None], None]) -> Callable[[], None]:
        """Call `callback` in the loop at each change of state, with the error if there is one. Returns a function that stops it."""
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback) if callback in self._subscribers else None

    async def wait_connected(self) -> None:
        """Wait for a live link. Raises if the connection was closed."""
        while self._link is None or self._link.ended.done() or self.state == "connecting":
            if self.state == "closed" or (self._link is not None and not self._reconnect):
                why = "The connection to the computer was closed" if self._error is None else self._error.message
                raise FreeholdError("computer.unreachable", why)
            if self._changed is None or self._changed.done():
                self._changed = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._changed)

    def give_up(self, error: FreeholdError) -> None:
        """The computer has ended: no link is made again, and whoever waits for one is told why."""
        self._reconnect = False
        if self._task is not None:
            self._task.cancel()
        if self._link is not None and not self._link.ended.done():
            self._link.cut(error)
        self._error = error
        if self.state != "closed":
            self._announce("lost", error)  # also when it was lost before: it will not come back now

    async def close(self) -> None:
        """Idempotent."""
        if self.state == "closed":
            return
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._set_state("closed")
        if self._link is not None:
            self._link.close()
        await self.use.close()

    def _note_use_lost(self) -> None:
        """Both connections are made anew: the computer must not sleep without asking this client."""
        if self._link is not None:
            self._link.cut(FreeholdError("link.lost", "The computer has ended"))

    def _note_sleep(self, asleep: bool) -> None:
        if self._link is not None:
            if asleep:
                self._link.pause()
            else:
                self._link.resume()

    def _mark_lost(self, error: FreeholdError) -> None:
        if self.state != "closed":
            self._error = error
            self._set_state("lost", error)

    async def _connect(self) -> Link:
        with self.use.hold():
            if isinstance(self.transport, SocketTransport):
                await self.use.connect(use_socket(self.transport.path))
            is_asked = self.use.is_connected
            link = await Link.connect(self.transport, accept=self._accept, clock=self._clock)
            link.use = self.use
            try:
                for restore in self.restored:
                    await restore(link)
            except BaseException:
                link.close()
                raise
            if is_asked and not self.use.is_connected:
                link.close()
                raise FreeholdError("link.lost", "The computer ended while it was connected")
        self._link = link
        self._error = None
        self._set_state("healthy")
        return link

    async def _keep_connected(self, link: Link) -> None:
        while True:
            self._error = await self._watch(link)
            self._set_state("lost", self._error)
            link = await self._reconnect_link()

    async def _watch(self, link: Link) -> FreeholdError:
        """Follow the link's health; return its error when it has ended."""
        while True:
            done, _ = await asyncio.wait({link.ended}, timeout=self._interval)
            if done:
                return link.ended.result()
            if link.health != self.state and link.health != "lost":
                self._set_state(link.health)

    async def _reconnect_link(self) -> Link:
        attempt = 0
        while True:
            try:
                return await self._connect()
            except FreeholdError as error:
                self._error = error
            await asyncio.sleep(_BACKOFF[min(attempt, len(_BACKOFF) - 1)])
            attempt += 1

    def _accept(self, link: Link, number: int, message: dict[str, Any]) -> None:
        """A program inside connected to a port that one of our listeners opened."""
        listener = message.get("listener")
        accept = self.accepts.get((id(link), listener)) if isinstance(listener, int) else None
        if accept is None:
            raise FreeholdError("link.protocol", f"The computer opened a channel for the unknown listener {listener!r}")
        accept(link, number)

    def _set_state(self, state: LinkState, error: FreeholdError | None = None) -> None:
        if state != self.state:
            self._announce(state, error)

    def _announce(self, state: LinkState, error: FreeholdError | None) -> None:
        self.state = state
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)
        for callback in list(self._subscribers):
            callback(state, error)
