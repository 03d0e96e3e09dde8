"""Something that starts at its first use and ends when nobody has used it for a while."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from freehold.errors import FreeholdError


class Ending(Protocol):
    """Something that can end by itself."""

    async def wait_ended(self) -> None: ...


T = TypeVar("T", bound=Ending)


@dataclass
class _Opening(Generic[T]):
    """A task of its own enters and leaves it, whoever asks for it and whoever ends it."""

    started: "asyncio.Future[T]"
    closing: asyncio.Event = field(default_factory=asyncio.Event)
    task: "asyncio.Task[None] | None" = None


class OnDemand(Generic[T]):
    """`use` gives what `open` makes; all users share it. `name` is what the owner calls it."""

    def __init__(
        self,
        name: str,
        open: Callable[[], "AbstractAsyncContextManager[T]"],
        *,
        idle: float,
        start_timeout: float = 60.0,
    ) -> None:
        self._name = name
        self._make = open
        self._idle = idle
        self._start_timeout = start_timeout
        self._opening: _Opening[T] | None = None
        self._held: set[asyncio.Task[None]] = set()
        """The tasks that hold it open, also one that is being closed."""
        self._users = 0
        self._used = 0.0

    @property
    def is_wanted(self) -> bool:
        """Whether it starts or has started, and nobody has ended it."""
        return self._opening is not None

    @property
    def is_gone(self) -> bool:
        """Whether nothing of it is left, also nothing that is being closed, and nobody uses it."""
        return not self._held and not self._users

    @property
    def is_open(self) -> bool:
        """Whether it has started and has not ended."""
        opening = self._opening
        return opening is not None and opening.started.done() and opening.started.exception() is None

    @property
    def users(self) -> int:
        return self._users

    @asynccontextmanager
    async def use(self) -> AsyncIterator[T]:
        """Raises the reason why it cannot start, `on-demand.slow` or `on-demand.ended`."""
        opening = self._find()
        self._users += 1
        try:
            yield await asyncio.shield(opening.started)
        finally:
            self._users -= 1
            self._used = time.monotonic()

    async def close(self) -> None:
        """Ends it, and waits until it is gone, whoever ended it. Idempotent. The next use starts it anew."""
        opening, self._opening = self._opening, None
        if opening is not None and opening.task is not None:
            opening.closing.set()
            if not opening.started.done():
                opening.task.cancel()
        await asyncio.gather(*self._held, return_exceptions=True)

    def _find(self) -> _Opening[T]:
        opening = self._opening
        if opening is None or opening.task is None or opening.task.done():
            opening = self._opening = _Opening(asyncio.get_running_loop().create_future())
            opening.task = asyncio.ensure_future(self._hold(opening))
            self._held.add(opening.task)
            opening.task.add_done_callback(self._held.discard)
        return opening

    async def _hold(self, opening: _Opening[T]) -> None:
        started = opening.started
        try:
            async with asyncio.timeout(self._start_timeout) as starting, self._make() as made:
                starting.reschedule(None)
                self._used = time.monotonic()
                started.set_result(made)
                await self._wait_unused(opening, made)
        except TimeoutError:
            if not started.done():
                words = f"The {self._name} did not start within {self._start_timeout:g} s"
                started.set_exception(FreeholdError("on-demand.slow", words))
        except FreeholdError as error:
            if not started.done():
                started.set_exception(error)
        finally:
            if self._opening is opening:
                self._opening = None
            if not started.done():
                started.set_exception(FreeholdError("on-demand.ended", f"The {self._name} has ended"))
            started.exception()  # marks it as retrieved: there may be nobody who waits

    async def _wait_unused(self, opening: _Opening[T], made: T) -> None:
        waits = [asyncio.ensure_future(opening.closing.wait()), asyncio.ensure_future(made.wait_ended())]
        try:
            while True:
                left = self._used + self._idle - time.monotonic()
                if left <= 0 and not self._users:
                    return
                done, _ = await asyncio.wait(waits, timeout=max(left, 0.5), return_when=asyncio.FIRST_COMPLETED)
                if done:
                    return
        finally:
            for one in waits:
                one.cancel()
