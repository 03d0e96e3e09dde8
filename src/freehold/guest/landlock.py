"""Who is kept from whom inside: every session's processes live in a domain of their own, and the owner's in another.

All of them share one uid, so that nothing but this keeps one session from reading the tokens of another out of its
environment or memory. A domain is a property of a thread and is inherited by what that thread starts: there is a
thread for each, that starts processes and does nothing else. The guest's own thread is in none, and sees everybody.
"""

from __future__ import annotations

from _thread import allocate_lock, stack_size, start_new_thread

from freehold.guest.kernel import can_set_apart, set_apart
from freehold.guest.spawn import SpawnError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MOST = 128
"""Sessions that are remembered. One that is forgotten gets a new domain: its next agent cannot reach what its last one left."""
STACK = 256 * 1024
OWNER = b""


class Domain:
    """A thread in a domain of its own, that acts when it is told to while the one that told it waits."""

    def __init__(self, strictly: bool) -> None:
        self._told, self._done = allocate_lock(), allocate_lock()
        self._told.acquire()
        self._done.acquire()
        self._act: Callable[[], int] | None = None
        self._pid = 0
        self._failure: Exception | None = None
        try:
            start_new_thread(self._live, (strictly,))
        except RuntimeError as error:
            raise SpawnError("computer.cannot-start", f"The computer cannot start another process: {error}") from None
        self._await()

    def start(self, act: Callable[[], int]) -> int:
        self._act = act
        self._told.release()
        self._await()
        return self._pid

    def leave(self) -> None:
        """What was started in it stays there."""
        self._act = None
        self._told.release()

    def _await(self) -> None:
        self._done.acquire()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _live(self, strictly: bool) -> None:
        try:
            set_apart(strictly)
        except OSError as error:
            # Never without: who asked to be apart would be told that it is.
            self._failure = SpawnError("computer.cannot-start", f"A session cannot be set apart: {error}")
            self._done.release()
            return
        while True:
            self._done.release()
            self._told.acquire()
            act, self._act = self._act, None
            if act is None:
                return
            try:
                self._pid = act()
            except Exception as error:
                self._failure = error


class Domains:
    """Every domain by name. The owner's has none, is there from the start, and may send signals to everybody."""

    def __init__(self) -> None:
        self._apart = can_set_apart()
        self._sessions: dict[bytes, Domain] = {}
        if self._apart:
            stack_size(STACK)
            self._owner = Domain(strictly=False)

    def within(self, name: bytes, act: Callable[[], int]) -> int:
        """Acts in a domain, which is made when it is needed. Where the kernel has none, everybody is together."""
        if not self._apart:
            return act()
        return (self._owner if name == OWNER else self._session(name)).start(act)

    def _session(self, name: bytes) -> Domain:
        domain = self._sessions.pop(name, None) or Domain(strictly=True)
        self._sessions[name] = domain  # the last used comes last
        if len(self._sessions) > MOST:
            oldest = next(iter(self._sessions))
            self._sessions.pop(oldest).leave()
        return domain
