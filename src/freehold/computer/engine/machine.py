"""A machine of a container engine. Each has its own thread, which starts the container and watches it until it is gone."""

import asyncio
import contextlib
import os
import select
import signal
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from freehold.computer.contract.report import Isolation, LimitEvent, MachineUsage, SleepReport
from freehold.computer.contract.transport import Transport
from freehold.computer.engine.api import EngineApi
from freehold.computer.engine.container import Container, ContainerOrder, start_container
from freehold.computer.walls.disk_guard import DiskGuard
from freehold.computer.walls.freezer import Freezer
from freehold.computer.walls.limit_watch import LimitWatch
from freehold.computer.walls.processes import ComputerProcesses
from freehold.errors import FreeholdError

MAX_LAST_WORDS = 4096
MAX_STDERR = 64 * 1024
READY_POLL_SECONDS = 0.005
KILLED = 128 + signal.SIGKILL


class ContainerMachine:
    """Created by `ContainerBackend.start`. `Machine` is its contract; `pid` is the guest's pid on the host."""

    def __init__(self, api: EngineApi, order: ContainerOrder, transport: Transport) -> None:
        self._api = api
        self._order = order
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._started: asyncio.Future[Container] = self._loop.create_future()
        self._ended: asyncio.Future[int] = self._loop.create_future()
        self._callbacks: list[Callable[[LimitEvent], None]] = []
        self._reported: deque[LimitEvent] = deque()
        self._stderr_tail = b""
        self._watch: LimitWatch | None = None
        self._freezer: Freezer | None = None
        self._start_cancelled = threading.Event()
        self._thread = threading.Thread(target=self._run_thread, name="container", daemon=True)

    @property
    def pid(self) -> int:
        return self._started.result().pid

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
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace):
                    # The kernel drops a signal that pid 1 is not prepared for: wait until the guest is.
                    while not self._ended.done() and not _blocks_sigterm(self.pid):  # noqa: ASYNC110 - no event exists
                        await asyncio.sleep(READY_POLL_SECONDS)
                    await self._send("SIGTERM")
                    await self.wait()
        if not self._ended.done():
            await self._send("SIGKILL")
        await self.wait()

    async def _send(self, name: str) -> None:
        """Directly, so that an engine that hangs delays nothing; by the engine if this user may not."""
        container = self._started.result()
        try:
            signal.pidfd_send_signal(container.process, signal.Signals[name])
        except PermissionError:
            with contextlib.suppress(FreeholdError):
                await asyncio.to_thread(self._api.kill, container.name, name)
        except OSError:
            pass  # it has ended

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
        status = -1
        try:
            try:
                container = start_container(self._api, self._order)
            except BaseException as error:
                failure = error
                self._call_in_loop(lambda: None if self._started.done() else self._started.set_exception(failure))
                return
            try:
                processes = self._find_processes(container)
                self._watch = self._make_watch(container, processes)
                self._freezer = freezer = Freezer(container.cgroup, processes)
                try:
                    self._call_in_loop(lambda: None if self._started.done() else self._started.set_result(container))
                    self._watch_until_end(container, self._watch, freezer)
                finally:
                    freezer.close()
                status = self._read_status(container)
            finally:
                container.remove()
        finally:
            self._call_in_loop(lambda: None if self._ended.done() else self._ended.set_result(status))

    def _find_processes(self, container: Container) -> ComputerProcesses:
        return ComputerProcesses(container.pid, self._order.uid, container.cgroup, self._order.spec.limits.file_size)

    def _make_watch(self, container: Container, processes: ComputerProcesses) -> LimitWatch:
        spec = self._order.spec
        disk = DiskGuard((spec.workspace, spec.home), spec.limits, processes, None)
        return LimitWatch(spec.limits, container.cgroup, processes, disk, self._report)

    def _read_status(self, container: Container) -> int:
        """The exit status from the engine, which may learn of the end a moment later than we do."""
        deadline = time.monotonic() + 5
        with contextlib.suppress(FreeholdError):
            while time.monotonic() < deadline:
                state = self._api.read_state(container.name)
                if not state.running:
                    return state.exit_code
                time.sleep(READY_POLL_SECONDS)
        return KILLED

    def _watch_until_end(self, container: Container, watch: LimitWatch, freezer: Freezer) -> None:
        received = 0
        poll = select.poll()
        poll.register(container.process, select.POLLIN)
        poll.register(container.errors, select.POLLIN)
        poll.register(freezer.woken, select.POLLIN)
        due = time.monotonic()
        while True:
            if self._start_cancelled.is_set():
                return
            pause = None if freezer.is_asleep else max(0.0, due - time.monotonic()) * 1000
            ready = {descriptor for descriptor, _ in poll.poll(pause)}
            if freezer.woken in ready:
                os.eventfd_read(freezer.woken)
            if container.errors in ready:
                data = os.read(container.errors, MAX_LAST_WORDS)
                received += len(data)
                self._stderr_tail = (self._stderr_tail + data)[-MAX_LAST_WORDS:]
                if not data or received > MAX_STDERR:
                    poll.unregister(container.errors)
            if container.process in ready:
                watch.sample()
                return
            if time.monotonic() >= due:
                with freezer.lock:
                    if not freezer.is_asleep:
                        watch.check()
                due = time.monotonic() + watch.pause


def _blocks_sigterm(pid: int) -> bool:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return False
    (mask,) = (line.split()[1] for line in lines if line.startswith("SigBlk:"))
    return bool(int(mask, 16) >> (signal.SIGTERM - 1) & 1)
