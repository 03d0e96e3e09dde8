"""Calls that the event loop asks the thread of a machine to make: only there the folders of the machine are staged."""

import asyncio
import contextlib
import logging
import os
import threading
from collections import deque
from collections.abc import Callable

from freehold.errors import FreeholdError

_log = logging.getLogger(__name__)


class ThreadCalls:
    """`ready` becomes readable when the thread should call `run`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[tuple[Callable[[], None], asyncio.Future[None]]] = deque()
        self._lock = threading.Lock()
        self._is_closed = False
        self.ready = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)

    async def call(self, function: Callable[[], None]) -> None:
        """Raises the `FreeholdError` of the function, and `computer.ended` if the thread has ended.

        Any other error of the function is logged and becomes `computer.unresponsive`: the thread goes on.
        """
        done: asyncio.Future[None] = self._loop.create_future()
        with self._lock:
            if self._is_closed:
                raise _ended()
            self._waiting.append((function, done))
            os.eventfd_write(self.ready, 1)
        await done

    def interrupt(self) -> None:
        """Let the thread look around."""
        with self._lock:
            if not self._is_closed:
                os.eventfd_write(self.ready, 1)

    def run(self) -> None:
        """Make the calls that wait. In the thread."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_read(self.ready)
        while self._waiting:
            function, done = self._waiting.popleft()
            try:
                function()
            except FreeholdError as error:
                self._settle(done, error)
            except Exception as error:
                _log.exception("A call in the thread of a virtual machine failed")
                self._settle(done, FreeholdError("computer.unresponsive", f"The virtual machine failed: {error}"))
            else:
                self._settle(done, None)

    def close(self) -> None:
        """At the end of the thread."""
        with self._lock:
            self._is_closed = True
            os.close(self.ready)
        while self._waiting:
            self._settle(self._waiting.popleft()[1], _ended())

    def _settle(self, done: "asyncio.Future[None]", error: FreeholdError | None) -> None:
        def settle() -> None:
            if done.done():
                return
            if error is None:
                done.set_result(None)
            else:
                done.set_exception(error)

        # RuntimeError: the loop is closed already, so nobody waits.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(settle)


def _ended() -> FreeholdError:
    return FreeholdError("computer.ended", "The computer has ended")
