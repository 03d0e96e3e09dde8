"""Waiting for something to become true, without asking again and again."""

import asyncio
from collections.abc import Callable


class Changes:
    """Whoever changes something tells; whoever waits looks again. For one event loop."""

    def __init__(self) -> None:
        self._waiters: set[asyncio.Future[None]] = set()

    def tell(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self.next()

    async def next(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)
