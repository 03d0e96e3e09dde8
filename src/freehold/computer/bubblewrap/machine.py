"""A machine of the bubblewrap backend.

Each computer has its own thread, which starts the sandbox and stays until it is gone. The kernel ties the life of the
sandbox to that thread (PR_SET_PDEATHSIG): nothing outlives the keeper, even if the keeper is killed with SIGKILL.
"""

import asyncio
import contextlib
import os
import select
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TypeVar

from freehold.computer.bubblewrap.sandbox import MAX_STDERR, Sandbox, SandboxOrder, is_ready_for_signal, start_sandbox
from freehold.computer.contract.report import Isolation, LimitEvent, MachineUsage, SleepReport
from freehold.computer.contract.transport import Transport
from freehold.computer.walls.disk_guard import DiskGuard
from freehold.computer.walls.freezer import Freezer
from freehold.computer.walls.limit_watch import LimitWatch
from freehold.computer.walls.processes import ComputerProcesses
from freehold.errors import FreeholdError

MAX_LAST_WORDS = 4096
READY_POLL_SECONDS = 0.002
"""Pause between two checks whether a new guest can receive SIGTERM."""

FutureResult = TypeVar("FutureResult")


class BubblewrapMachine:
    """Created by `Bubblewrap.start`. `Machine` is its contract; `pid` is the guest's pid on the host."""

    def __init__(self, order: SandboxOrder, transport: Transport) -> None:
        self._order = order
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._started: asyncio.Future[Sandbox] = self._loop.create_future()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self._callbacks: list[Callable[[LimitEvent], None]] = []
        self._reported: deque[LimitEvent] = deque()
        self._stderr_tail = b""
        self._watch: LimitWatch | None = None
        self._freezer: Freezer | None = None
        self._start_cancelled = threading.Event()
        self._thread = threading.Thread(target=self._run_thread, name="computer", daemon=True)

    @property
    def pid(self) -> int:
        return self._started.result().guest

    @property
    def isolation(self) -> Isolation:
        return self._started.result().isolation

    @property
    def transport(self) -> Transport:
        return self._transport

    def last_words(self) -> str:
        return self._stderr_tail.decode(errors="replace")

    async def begin(self) -> None:
        self._thread.start()
        try:
            await asyncio.shield(self._started)
        except asyncio.CancelledError:
            self._start_cancelled.set()
            await asyncio.shield(self._ended)
            raise

    async def wait(self) -> int:
        return await asyncio.shield(self._ended)

    @property
    def is_asleep(self) -> bool:
        return self._freezer is not None and self._freezer.is_asleep

    async def sleep(self) -> SleepReport:
        if self._freezer is None or self._ended.done():
            raise FreeholdError("computer.ended", "The computer has ended")
        return await self._freezer.sleep()

    async def wake(self) -> None:
        if self._freezer is not None:
            self._freezer.wake()

    async def stop(self, grace: float = 5.0) -> None:
        await self.wake()  # what is frozen can neither end nor be ended
        if not self._ended.done() and grace > 0:
            with contextlib.suppress(TimeoutError, ProcessLookupError):
                async with asyncio.timeout(grace):
                    # The kernel drops a signal that pid 1 is not prepared for: wait until the guest is.
                    while not self._ended.done() and not is_ready_for_signal(self.pid, signal.SIGTERM):  # noqa: ASYNC110 - no event exists
                        await asyncio.sleep(READY_POLL_SECONDS)
                    if not self._ended.done():
                        os.kill(self.pid, signal.SIGTERM)
                    await self.wait()
        if not self._ended.done():
            self._started.result().kill()
        await self.wait()

    def usage(self) -> MachineUsage:
        if self._watch is None or self._ended.done():
            return MachineUsage()
        usage = self._watch.sample()
        self._deliver_events()
        return usage

    def subscribe(self, callback: Callable[[LimitEvent], None]) -> Callable[[], None]:
        self._callbacks.append(callback)

        def unsubscribe() -> None:
            with contextlib.suppress(ValueError):
                self._callbacks.remove(callback)

        return unsubscribe

    def _deliver_events(self) -> None:
        """Runs in the loop. Delivers each reported event once, whether the thread or `usage` found it."""
        while self._reported:
            event = self._reported.popleft()
            for callback in tuple(self._callbacks):
                callback(event)

    def _report(self, event: LimitEvent) -> None:
        self._reported.append(event)
        self._call_in_loop(self._deliver_events)

    def _call_in_loop(self, callback: Callable[[], None]) -> None:
        # RuntimeError: the loop is closed already, so there is nothing to call.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(callback)

    def _run_thread(self) -> None:
        """The thread of this computer: starts the sandbox, watches it, removes it."""
        status = -1
        try:
            try:
                sandbox = start_sandbox(self._order)
            except BaseException as error:
                failure = error
                self._call_in_loop(lambda: _fail(self._started, failure))
                return
            try:
                spec = self._order.spec
                processes = ComputerProcesses(sandbox.guest, self._order.uid, sandbox.cgroup, spec.limits.file_size)
                disk = DiskGuard((spec.workspace, spec.home), spec.limits, processes, sandbox.quota)
                self._watch = LimitWatch(spec.limits, sandbox.cgroup, processes, disk, self._report)
                self._freezer = freezer = Freezer(sandbox.cgroup, processes)
                try:
                    self._call_in_loop(lambda: _resolve(self._started, sandbox))
                    status = self._watch_until_end(sandbox, self._watch, freezer)
                finally:
                    freezer.close()
            finally:
                sandbox.remove()
        finally:
            self._call_in_loop(lambda: _resolve(self._ended, status))

    def _watch_until_end(self, sandbox: Sandbox, watch: LimitWatch, freezer: Freezer) -> int:
        ended = os.pidfd_open(sandbox.helper.pid)
        stderr = -1 if sandbox.helper.stderr is None else sandbox.helper.stderr.fileno()
        received = 0
        poll = select.poll()
        poll.register(ended, select.POLLIN)
        poll.register(stderr, select.POLLIN)
        poll.register(freezer.woken, select.POLLIN)
        due = time.monotonic()
        try:
            while True:
                if self._start_cancelled.is_set():
                    sandbox.kill()
                pause = None if freezer.is_asleep else max(0.0, due - time.monotonic()) * 1000
                ready = {descriptor for descriptor, _ in poll.poll(pause)}
                if freezer.woken in ready:
                    os.eventfd_read(freezer.woken)
                if stderr in ready:
                    data = os.read(stderr, MAX_LAST_WORDS)
                    received += len(data)
                    self._stderr_tail = (self._stderr_tail + data)[-MAX_LAST_WORDS:]
                    # A guest that floods stderr is no longer read, and blocks.
                    if not data or received > MAX_STDERR:
                        poll.unregister(stderr)
                if ended in ready:
                    watch.sample()
                    return sandbox.helper.wait()
                if time.monotonic() >= due:
                    with freezer.lock:
                        if not freezer.is_asleep:
                            watch.check()
                    due = time.monotonic() + watch.pause
        finally:
            os.close(ended)


def _resolve(future: "asyncio.Future[FutureResult]", value: FutureResult) -> None:
    if not future.done():
        future.set_result(value)


def _fail(future: "asyncio.Future[Sandbox]", error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
