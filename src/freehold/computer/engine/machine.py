"""A machine of a container engine. Each has its own thread, which starts the container and watches it until it is gone."""

import asyncio
import contextlib
import signal
import threading
import time
from collections.abc import Callable

from freehold.computer.contract.report import Isolation, LimitEvent, MachineUsage, SleepReport
from freehold.computer.contract.transport import Transport
from freehold.computer.engine.api import EngineApi
from freehold.computer.engine.container import Container, ContainerOrder, start_container
from freehold.computer.walls.disk_guard import DiskGuard
from freehold.computer.walls.event_delivery import EventDelivery
from freehold.computer.walls.freezer import Freezer
from freehold.computer.walls.guest_watch import GuestWatch
from freehold.computer.walls.limit_watch import LimitWatch
from freehold.computer.walls.processes import ComputerProcesses, is_ready_for_signal
from freehold.errors import FreeholdError

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
        self._events = EventDelivery(self._loop)
        self._limits: LimitWatch | None = None
        self._watch: GuestWatch | None = None
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
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace):
                    # The kernel drops a signal that pid 1 is not prepared for: wait until the guest is.
                    while not self._ended.done() and not is_ready_for_signal(self.pid, signal.SIGTERM):  # noqa: ASYNC110 - no event exists
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
        if self._limits is None or self._ended.done():
            return MachineUsage()
        usage = self._limits.sample()
        self._events.deliver()
        return usage

    def subscribe(self, callback: Callable[[LimitEvent], None]) -> Callable[[], None]:
        return self._events.subscribe(callback)

    def _run_thread(self) -> None:
        status = -1
        try:
            try:
                container = start_container(self._api, self._order)
            except BaseException as error:
                failure = error
                self._events.call_in_loop(
                    lambda: None if self._started.done() else self._started.set_exception(failure)
                )
                return
            try:
                processes = self._find_processes(container)
                self._limits = self._make_limit_watch(container, processes)
                self._freezer = freezer = Freezer(container.cgroup, processes)
                self._watch = watch = GuestWatch(self._limits, freezer, self._start_cancelled)
                try:
                    self._events.call_in_loop(
                        lambda: None if self._started.done() else self._started.set_result(container)
                    )
                    watch.run(container.process, container.errors)
                finally:
                    freezer.close()
                status = self._read_status(container)
            finally:
                container.remove()
        finally:
            self._events.call_in_loop(lambda: None if self._ended.done() else self._ended.set_result(status))

    def _find_processes(self, container: Container) -> ComputerProcesses:
        return ComputerProcesses(container.pid, self._order.uid, container.cgroup, self._order.spec.limits.file_size)

    def _make_limit_watch(self, container: Container, processes: ComputerProcesses) -> LimitWatch:
        spec = self._order.spec
        disk = DiskGuard((spec.workspace, spec.home), spec.limits, processes, None)
        return LimitWatch(spec.limits, container.cgroup, processes, disk, self._events.report)

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
