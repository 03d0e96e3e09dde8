"""Separates the processes of sessions: each session has a Landlock domain, and the owner's processes have another.

All processes have the same uid, so without domains one session could read the tokens of another from its environment or
memory. A domain belongs to a thread and is inherited by what the thread starts. Each domain therefore has a thread that
only starts processes. The guest's main thread is in no domain and sees all processes.

The domains of all sessions are inside one more domain. No process can leave it, so from there everything that agents
started can be found and killed, whatever it did to hide: see session_end.py.
"""

from __future__ import annotations

from _thread import allocate_lock, stack_size, start_new_thread

from freehold.guest.kernel import can_scope_signals, enter_landlock_domain, has_landlock, mark_thread
from freehold.guest.spawn import OperationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MAX_DOMAINS = 128
"""Domains that are kept. A session whose domain was dropped gets a new one, which cannot reach its older processes."""
STACK = 256 * 1024
OWNER = b""
COMMANDS = b"owner commands"
"""The domain of commands that the owner runs in a session (`!`): its processes may signal those of every session."""


class LandlockDomain:
    """A thread in its own domain. It runs one function at a time while the caller waits."""

    def __init__(self, enter: Callable[[], None], above: LandlockDomain | None = None) -> None:
        """`enter` is called in the new thread. With `above` the thread begins in that domain."""
        self._request, self._done = allocate_lock(), allocate_lock()
        self._request.acquire()
        self._done.acquire()
        self._act: Callable[[], int] | None = None
        self._result = 0
        self._failure: Exception | None = None
        try:
            if above is None:
                start_new_thread(self._run, (enter,))
            else:
                above.start(lambda: start_new_thread(self._run, (enter,)))
        except RuntimeError as error:
            raise OperationError(
                "computer.cannot-start", f"The computer cannot start another process: {error}"
            ) from None
        self._await()

    def start(self, act: Callable[[], int]) -> int:
        self._act = act
        self._request.release()
        self._await()
        return self._result

    def leave(self) -> None:
        """End the thread. Processes that it started stay in the domain."""
        self._act = None
        self._request.release()

    def _await(self) -> None:
        self._done.acquire()
        failure, self._failure = self._failure, None
        if failure is not None:
            raise failure

    def _run(self, enter: Callable[[], None]) -> None:
        try:
            enter()
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
                self._result = act()
            except Exception as error:
                self._failure = error


class LandlockDomains:
    """Every domain by its session. The owner's has an empty name and may signal every process.

    `agents` is the domain around those of all sessions. Its processes are also marked, for kernels whose domains do not
    limit signals. Without Landlock only the mark is left.
    """

    def __init__(self) -> None:
        self._enabled = has_landlock()
        self.scoped = self._enabled and can_scope_signals()
        self._sessions: dict[bytes, LandlockDomain] = {}
        self._agents: LandlockDomain | None = None
        stack_size(STACK)
        if self._enabled:
            self.owner: LandlockDomain | None = LandlockDomain(lambda: enter_landlock_domain(False))
        else:
            self.owner = None

    @property
    def agents(self) -> LandlockDomain:
        if self._agents is None:
            self._agents = LandlockDomain(self._enter_agents)
        return self._agents

    def _enter_agents(self) -> None:
        mark_thread()
        if self._enabled:
            enter_landlock_domain(True)

    def run_in(self, name: bytes, act: Callable[[], int]) -> int:
        """Call `act` in a domain, which is created if needed. Without Landlock all sessions share one."""
        if name == OWNER:
            return act() if self.owner is None else self.owner.start(act)
        return (self._session(name) if self._enabled else self.agents).start(act)

    def _session(self, name: bytes) -> LandlockDomain:
        strictly = name != COMMANDS
        domain = self._sessions.pop(name, None)
        if domain is None:
            domain = LandlockDomain(lambda: enter_landlock_domain(strictly), self.agents)
        self._sessions[name] = domain  # most recently used last
        if len(self._sessions) > MAX_DOMAINS:
            oldest = next(iter(self._sessions))
            self._sessions.pop(oldest).leave()
        return domain
