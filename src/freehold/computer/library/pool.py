"""Started computers that wait for short jobs. Each is used once."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Self

from freehold.errors import FreeholdError

if TYPE_CHECKING:
    from freehold.computer.library.computer import Computer

_RETRY = 1.0
_REFILL_PAUSE = 0.025
"""Seconds in which the job that took a computer has the processor to itself, while another one is ready."""


class WarmComputer:
    """A started computer that waits for a job."""

    def __init__(self, computer: "Computer") -> None:
        self.computer = computer
        self.taken = asyncio.Event()


class ComputerPool:
    """Keeps `size` computers started. `async with pool.checkout() as computer` gives one that was never used.

    When one is taken, a new one is started, a moment later if others are ready. A start that fails is repeated every
    second, and waiting callers get its error.
    """

    def __init__(
        self, start: Callable[[], Awaitable["Computer"]], size: int, read_waits_for: Callable[[], str] = str
    ) -> None:
        if size < 1:
            raise FreeholdError("computer.bad-request", f"A pool needs at least 1 computer, not {size}")
        self._start = start
        self._size = size
        self._read_waits_for = read_waits_for
        self._callers = 0
        self._ready: asyncio.Queue[WarmComputer] = asyncio.Queue(size)
        self._group = asyncio.TaskGroup()
        self._supply_tasks: list[asyncio.Task[None]] = []
        self._changed = asyncio.Event()
        self._used_up = asyncio.Event()
        self._error: FreeholdError | None = None

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._supply_tasks = [
            self._group.create_task(self._keep_one_warm(), name="warm computer") for _ in range(self._size)
        ]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._supply_tasks:
            task.cancel()
        await self._group.__aexit__(kind, error, trace)
        while not self._ready.empty():
            await self._ready.get_nowait().computer.close()

    @property
    def ready(self) -> int:
        return self._ready.qsize()

    @property
    def waits_for(self) -> str:
        """Why a caller gets no computer yet, when a fleet has no room. Empty while nobody waits."""
        return self._read_waits_for() if self._callers else ""

    @contextlib.contextmanager
    def _waiting(self) -> Iterator[None]:
        self._callers += 1
        try:
            yield
        finally:
            self._callers -= 1

    async def wait_ready(self) -> None:
        """Wait until all are started. Raises the error of a start that failed."""
        with self._waiting():
            while not self._ready.full():
                if self._error is not None:
                    raise self._error
                self._changed.clear()
                await self._changed.wait()

    @contextlib.asynccontextmanager
    async def checkout(self) -> AsyncIterator["Computer"]:
        """A new computer, without delay if one is ready. It is closed on leaving."""
        computer = await self._take_computer()
        try:
            yield computer
        finally:
            await computer.close()

    async def _take_computer(self) -> "Computer":
        while True:
            if self._ready.empty() and self._error is not None:
                raise self._error
            if self._ready.qsize() <= 1:
                self._used_up.set()
            with self._waiting():
                warm = await self._ready.get()
            warm.taken.set()
            computer = warm.computer
            if computer.state == "healthy" and computer.is_connected:
                return computer
            await computer.close()

    async def _keep_one_warm(self) -> None:
        while True:
            try:
                computer = await self._start()
            except FreeholdError as error:
                self._error = error
                self._changed.set()
                await asyncio.sleep(_RETRY)
                continue
            self._error = None
            warm = WarmComputer(computer)
            self._ready.put_nowait(warm)
            self._used_up.clear()
            self._changed.set()
            await warm.taken.wait()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_REFILL_PAUSE):
                    await self._used_up.wait()
