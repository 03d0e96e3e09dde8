"""Separates the processes of sessions: each session has a Landlock domain, and the owner's processes have another.

All processes have the same uid, so without domains one session could read the tokens of another from its environment or
memory. A domain belongs to a thread and is inherited by what the thread starts. Each domain therefore has a thread that
only starts processes. The guest's main thread is in no domain and sees all processes.
"""

from __future__ import annotations

from _thread import allocate_lock, stack_size, start_new_thread

from freehold.guest.kernel import enter_landlock_domain, has_landlock
from freehold.guest.spawn import OperationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DOMAINS = 128
"""Domains that are kept. A session whose domain was dropped gets a new one, which cannot reach its older processes."""
STACK = 256 * 1024
OWNER = b""


class LandlockDomain:
    """A thread in its own domain. It runs one function at a time while the caller waits."""

    def __init__(self, strictly: bool) -> None:
        self._request, self._done = allocate_lock(), allocate_lock()
        self._request.acquire()
        self._done.acquire()
        self._act: Callable[[], int] | None = None
        self._pid = 0
        self._failure: Exception | None = None
        try:
            start_new_thread(self._run, (strictly,))
        except RuntimeError as error:
            raise OperationError(
                "computer.cannot-start", f"The computer cannot start another process: {error}"
            ) from None
        self._await()

    def start(self, act: Callable[[], int]) -> int:
        self._act = act
        self._request.release()
        self._await()
        return self._pid

    def leave(self) -> None:
        """End the thread. Processes that it started stay in the domain."""
        self._act = None
        self._request.release()

    def _await(self) -> None:
        self._done.acquire()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _run(self, strictly: bool) -> None:
        try:
            enter_landlock_domain(strictly)
        except OSError as error:
            # Do not start anything without a domain: the caller relies on the separation.
            self._failure = OperationError("computer.cannot-start", f"A Landlock domain cannot be entered: {error}")
            self._done.release()
            return
        while True:
            self._done.release()
            self._request.acquire()
            act, self._act = self._act, None
            if act is None:
                return
            try:
                self._pid = act()
            except Exception as error:
                self._failure = error


class LandlockDomains:
    """Every domain by its session. The owner's has an empty name, exists from the start, and may signal every process."""

    def __init__(self) -> None:
        self._enabled = has_landlock()
        self._sessions: dict[bytes, LandlockDomain] = {}
        if self._enabled:
            stack_size(STACK)
            self._owner = LandlockDomain(strictly=False)

    def run_in(self, name: bytes, act: Callable[[], int]) -> int:
        """Call `act` in a domain, which is created if needed. Without Landlock it is called directly."""
        if not self._enabled:
            return act()
        return (self._owner if name == OWNER else self._session(name)).start(act)

    def _session(self, name: bytes) -> LandlockDomain:
        domain = self._sessions.pop(name, None) or LandlockDomain(strictly=True)
        self._sessions[name] = domain  # most recently used last
        if len(self._sessions) > MAX_DOMAINS:
            oldest = next(iter(self._sessions))
            self._sessions.pop(oldest).leave()
        return domain
