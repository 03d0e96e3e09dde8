"""Lets tasks wait until a condition is true, without polling."""

import asyncio
from collections.abc import Callable


class StateSignal:
    """Call `notify` after a change; every waiting task then checks its condition again. For one event loop."""

    def __init__(self) -> None:
        self._waiters: set[asyncio.Future[None]] = set()

    def notify(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await self.wait_for_change()

    async def wait_for_change(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)
