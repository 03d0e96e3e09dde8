"""What the thread of a machine does while its guest runs on this kernel: waits for its end, and holds its limits."""

import os
import select
import threading
import time

from freehold.computer.walls.freezer import Freezer
from freehold.computer.walls.limit_watch import LimitWatch

MAX_LAST_WORDS = 4096
MAX_STDERR = 64 * 1024


class GuestWatch:
    """`last_words` is the end of what the guest has written to its standard error."""

    def __init__(self, limits: LimitWatch, freezer: Freezer, cancelled: threading.Event) -> None:
        self.last_words = b""
        self._limits = limits
        self._freezer = freezer
        self._cancelled = cancelled

    def run(self, ended: int, errors: int) -> None:
        """Until the pidfd `ended` shows the end, or nobody wants the computer any more. `errors` is read meanwhile."""
        freezer, limits = self._freezer, self._limits
        received = 0
        poll = select.poll()
        for descriptor in (ended, errors, freezer.woken):
            poll.register(descriptor, select.POLLIN)
        due = time.monotonic()
        while not self._cancelled.is_set():
            pause = None if freezer.is_asleep else max(0.0, due - time.monotonic()) * 1000
            ready = {descriptor for descriptor, _ in poll.poll(pause)}
            if freezer.woken in ready:
                os.eventfd_read(freezer.woken)
            if errors in ready:
                data = os.read(errors, MAX_LAST_WORDS)
                received += len(data)
                self.last_words = (self.last_words + data)[-MAX_LAST_WORDS:]
                # A guest that floods its standard error is no longer read, and blocks.
                if not data or received > MAX_STDERR:
                    poll.unregister(errors)
            if ended in ready:
                limits.sample()
                return
            if time.monotonic() >= due:
                with freezer.lock:
                    if not freezer.is_asleep:
                        limits.check()
                due = time.monotonic() + limits.pause
