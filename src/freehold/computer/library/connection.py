"""A link that is made again whenever it is lost, and those who want to know about it."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

from freehold.computer.link import Link
from freehold.computer.pulse import PING_EVERY
from freehold.errors import FreeholdError

State = Literal["connecting", "healthy", "unhealthy", "lost", "closed"]
_BACKOFF = (0.02, 0.05, 0.1, 0.2, 0.5, 1.0)

Restore = Callable[[Link], Awaitable[None]]


class Connection:
    """`state` and its `subscribe` tell how it is; `link` is the live one or an error.

    Whatever was running on a link that was lost is ended by the guest; only terminals outlive it. What must exist on
    every link (ports listened on) is registered in `restored` and made anew before the state becomes healthy.
    """

    def __init__(
        self,
        path: Path,
        *,
        reconnect: bool = True,
        clock: Callable[[], float] = time.monotonic,
        interval: float = PING_EVERY,
    ) -> None:
        self.path = path
        self._reconnect = reconnect
        self._clock = clock
        self._interval = interval
        self._link: Link | None = None
        self._error: FreeholdError | None = None
        self._task: asyncio.Task[None] | None = None
        self._subscribers: list[Callable[[State, FreeholdError | None], None]] = []
        self._changed: asyncio.Future[None] | None = None
        self.accepts: dict[tuple[int, int], Callable[[Link, int], None]] = {}
        self.restored: list[Restore] = []
        self.state: State = "connecting"

    async def open(self) -> None:
        """The first connection, made by the caller so that its error is the caller's."""
        link = await self._connect()
        if self._reconnect:
            self._task = asyncio.create_task(self._keep(link), name=f"link to {self.path}")
        else:
            link.ended.add_done_callback(lambda ended: self._lose(ended.result()))

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

    def subscribe(self, callback: Callable[[State, FreeholdError | None], None]) -> Callable[[], None]:
        """Called in the loop at each change of state, with the reason where there is one; returns the way to stop that."""
        self._subscribers.append(callback)
        return lambda: self._subscribers.remove(callback) if callback in self._subscribers else None

    async def wait_connected(self) -> None:
        """Returns at once when there is a live link; raises once the connection was closed for good."""
        while self._link is None or self._link.ended.done() or self.state == "connecting":
            if self.state == "closed" or (self._link is not None and not self._reconnect):
                raise FreeholdError("computer.unreachable", "The connection to the computer was closed")
            if self._changed is None or self._changed.done():
                self._changed = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._changed)

    async def close(self) -> None:
        """Idempotent."""
        if self.state == "closed":
            return
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._become("closed")
        if self._link is not None:
            self._link.close()

    def _lose(self, error: FreeholdError) -> None:
        if self.state != "closed":
            self._error = error
            self._become("lost", error)

    async def _connect(self) -> Link:
        link = await Link.connect(self.path, accept=self._accept, clock=self._clock)
        try:
            for restore in self.restored:
                await restore(link)
        except BaseException:
            link.close()
            raise
        self._link = link
        self._error = None
        self._become("healthy")
        return link

    async def _keep(self, link: Link) -> None:
        while True:
            self._error = await self._watch(link)
            self._become("lost", self._error)
            link = await self._again()

    async def _watch(self, link: Link) -> FreeholdError:
        """Returns when the link has ended; tells of its health until then."""
        while True:
            done, _ = await asyncio.wait({link.ended}, timeout=self._interval)
            if done:
                return link.ended.result()
            if link.health != self.state and link.health != "lost":
                self._become(link.health)

    async def _again(self) -> Link:
        attempt = 0
        while True:
            try:
                return await self._connect()
            except FreeholdError as error:
                self._error = error
            await asyncio.sleep(_BACKOFF[min(attempt, len(_BACKOFF) - 1)])
            attempt += 1

    def _accept(self, link: Link, number: int, message: dict[str, Any]) -> None:
        """A connection was made inside to a port that we asked the guest to listen on."""
        listener = message.get("listener")
        take = self.accepts.get((id(link), listener)) if isinstance(listener, int) else None
        if take is None:
            raise FreeholdError(
                "link.protocol", f"The computer opened a channel for listener {listener!r}, which does not exist"
            )
        take(link, number)

    def _become(self, state: State, error: FreeholdError | None = None) -> None:
        if state == self.state:
            return
        self.state = state
        if self._changed is not None and not self._changed.done():
            self._changed.set_result(None)
        for callback in list(self._subscribers):
            callback(state, error)
