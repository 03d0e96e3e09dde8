"""A machine of the bubblewrap backend.

Each computer has its own thread, which starts the sandbox and stays until it is gone. The kernel ties the life of the
sandbox to that thread (PR_SET_PDEATHSIG): nothing outlives the keeper, even if the keeper is killed with SIGKILL.
"""

import asyncio
import contextlib
import os
import signal
import threading
from collections.abc import Callable
from typing import TypeVar

from freehold.computer.bubblewrap.sandbox import Sandbox, SandboxOrder, start_sandbox
from freehold.computer.contract.report import Isolation, LimitEvent, MachineUsage, SleepReport
from freehold.computer.contract.transport import Transport
from freehold.computer.walls.disk_guard import DiskGuard
from freehold.computer.walls.event_delivery import EventDelivery
from freehold.computer.walls.freezer import Freezer
from freehold.computer.walls.guest_watch import GuestWatch
from freehold.computer.walls.limit_watch import LimitWatch
from freehold.computer.walls.processes import ComputerProcesses, is_ready_for_signal
from freehold.errors import FreeholdError

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
        self._events = EventDelivery(self._loop)
        self._limits: LimitWatch | None = None
        self._watch: GuestWatch | None = None
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
        return "" if self._watch is None else self._watch.last_words.decode(errors="replace")

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
        if self._limits is None or self._ended.done():
            return MachineUsage()
        usage = self._limits.sample()
        self._events.deliver()
        return usage

    def subscribe(self, callback: Callable[[LimitEvent], None]) -> Callable[[], None]:
        return self._events.subscribe(callback)

    def _run_thread(self) -> None:
        """The thread of this computer: starts the sandbox, watches it, removes it."""
        status = -1
        try:
            try:
                sandbox = start_sandbox(self._order)
            except BaseException as error:
                failure = error
                self._events.call_in_loop(lambda: _fail(self._started, failure))
                return
            try:
                spec = self._order.spec
                processes = ComputerProcesses(sandbox.guest, self._order.uid, sandbox.cgroup, spec.limits.file_size)
                disk = DiskGuard((spec.workspace, spec.home), spec.limits, processes, sandbox.quota)
                self._limits = LimitWatch(spec.limits, sandbox.cgroup, processes, disk, self._events.report)
                self._freezer = freezer = Freezer(sandbox.cgroup, processes)
                self._watch = watch = GuestWatch(self._limits, freezer, self._start_cancelled)
                try:
                    self._events.call_in_loop(lambda: _resolve(self._started, sandbox))
                    status = _watch_until_end(sandbox, watch)
                finally:
                    freezer.close()
            finally:
                sandbox.remove()
        finally:
            self._events.call_in_loop(lambda: _resolve(self._ended, status))


def _watch_until_end(sandbox: Sandbox, watch: GuestWatch) -> int:
    ended = os.pidfd_open(sandbox.helper.pid)
    try:
        watch.run(ended, -1 if sandbox.helper.stderr is None else sandbox.helper.stderr.fileno())
    finally:
        os.close(ended)
    sandbox.kill()
    return sandbox.helper.wait()


def _resolve(future: "asyncio.Future[FutureResult]", value: FutureResult) -> None:
    if not future.done():
        future.set_result(value)


def _fail(future: "asyncio.Future[Sandbox]", error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
