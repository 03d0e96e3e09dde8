"""Warm computers for short jobs: each is used once and thrown away."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

from freehold.errors import FreeholdError

if TYPE_CHECKING:
    from freehold.computer.computer import Computer

_RETRY = 1.0


class Warm:
    """A computer waiting to be taken."""

    def __init__(self, computer: "Computer") -> None:
        self.computer = computer
        self.taken = asyncio.Event()


class Pool:
    """Keeps `size` computers ready. `async with pool.checkout() as computer` gives one that nobody has used.

    A replacement is started as soon as one is taken. What cannot be started is tried again every second, and the reason
    is raised to whoever waits.
    """

    def __init__(self, start: Callable[[], Awaitable["Computer"]], size: int) -> None:
        if size < 1:
            raise FreeholdError("computer.bad-request", f"A pool of {size} computers is none")
        self._start = start
        self._size = size
        self._ready: asyncio.Queue[Warm] = asyncio.Queue(size)
        self._group = asyncio.TaskGroup()
        self._keepers: list[asyncio.Task[None]] = []
        self._changed = asyncio.Event()
        self._error: FreeholdError | None = None

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._keepers = [self._group.create_task(self._supply(), name="warm computer") for _ in range(self._size)]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._keepers:
            task.cancel()
        await self._group.__aexit__(kind, error, trace)
        while not self._ready.empty():
            await self._ready.get_nowait().computer.close()

    @property
    def ready(self) -> int:
        return self._ready.qsize()

    async def wait_ready(self) -> None:
        """Until all are warm. Raises why they cannot be."""
        while not self._ready.full():
            if self._error is not None:
                raise self._error
            self._changed.clear()
            await self._changed.wait()

    @asynccontextmanager
    async def checkout(self) -> AsyncIterator["Computer"]:
        """A fresh computer, at once when one is warm; it is closed on leaving."""
        computer = await self._take()
        try:
            yield computer
        finally:
            await computer.close()

    async def _take(self) -> "Computer":
        while True:
            if self._ready.empty() and self._error is not None:
                raise self._error
            warm = await self._ready.get()
            warm.taken.set()
            computer = warm.computer
            if computer.state == "healthy" and computer.alive:
                return computer
            await computer.close()

    async def _supply(self) -> None:
        while True:
            try:
                computer = await self._start()
            except FreeholdError as error:
                self._error = error
                self._changed.set()
                await asyncio.sleep(_RETRY)
                continue
            self._error = None
            warm = Warm(computer)
            self._ready.put_nowait(warm)
            self._changed.set()
            await warm.taken.wait()
