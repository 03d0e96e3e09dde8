"""Limit events on their way from the thread of a machine to whoever subscribed in its event loop."""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable

from freehold.computer.contract.report import LimitEvent


class EventDelivery:
    """Delivers each reported event once, in the loop, whichever thread found it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._callbacks: list[Callable[[LimitEvent], None]] = []
        self._reported: deque[LimitEvent] = deque()

    def subscribe(self, callback: Callable[[LimitEvent], None]) -> Callable[[], None]:
        self._callbacks.append(callback)

        def unsubscribe() -> None:
            with contextlib.suppress(ValueError):
                self._callbacks.remove(callback)

        return unsubscribe

    def report(self, event: LimitEvent) -> None:
        """In any thread."""
        self._reported.append(event)
        self.call_in_loop(self.deliver)

    def deliver(self) -> None:
        """In the loop."""
        while self._reported:
            event = self._reported.popleft()
            for callback in tuple(self._callbacks):
                callback(event)

    def call_in_loop(self, callback: Callable[[], None]) -> None:
        # RuntimeError: the loop is closed already, so there is nothing to call.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback)
